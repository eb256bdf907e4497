import { type Call, pageOf } from '../call.ts'
import type { StoredFile } from '../memory.ts'
import { parseForm } from '../multipart.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, jsonReply, type Reply } from '../reply.ts'
import { missing } from './read-fields.ts'

/** POST /v1/files */
export function uploadFile(call: Call): Reply {
  const { fields, file } = parseForm(call)
  const { purpose } = fields
  if (file === undefined) throw missing('file')
  if (purpose === undefined) throw missing('purpose')
  return jsonReply(fileJson(storeFile(call, purpose, file.filename, file.content)))
}

export function storeFile(call: Call, purpose: string, filename: string, content: Buffer): StoredFile {
  const id = `file-${call.identity.base62(22)}`
  const file = { id, filename, purpose, createdAt: call.identity.now(), content }
  call.memory.files.set(id, file)
  return file
}

/** GET /v1/files */
export function listFiles(call: Call): Reply {
  const { page, ends } = pageOf(call, call.memory.files.newestFirst(), 10_000)
  return jsonReply({ object: 'list', data: page.map(fileJson), ...ends })
}

/** GET /v1/files/{id} */
export function getFile(call: Call): Reply {
  return jsonReply(fileJson(requireFile(call)))
}

/** GET /v1/files/{id}/content */
export function getFileContent(call: Call): Reply {
  return bytesReply('application/octet-stream', requireFile(call).content)
}

/** DELETE /v1/files/{id} */
export function deleteFile(call: Call): Reply {
  const { id } = requireFile(call)
  call.memory.files.delete(id)
  return jsonReply({ object: 'file', deleted: true, id })
}

function requireFile({ memory, param }: Call): StoredFile {
  const file = memory.files.get(param)
  if (file === undefined) throw new Refusal(404, `No such File object: ${param}`, { param: 'id' })
  return file
}

function fileJson(file: StoredFile): object {
  return {
    object: 'file',
    id: file.id,
    purpose: file.purpose,
    filename: file.filename,
    bytes: file.content.length,
    created_at: Math.floor(file.createdAt.getTime() / 1000),
    expires_at: null,
    status: 'processed',
    status_details: null,
  }
}
