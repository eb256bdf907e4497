import type { Call } from '../call.ts'
import type { StoredFile } from '../file-store.ts'
import { parseMultipart } from '../multipart.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, jsonReply, type Reply } from '../reply.ts'
import { missing } from './chat-body.ts'
import { chatHeaders } from './chat-headers.ts'

const pageSizeMax = 10_000

/** POST /v1/files on the Chat surface */
export function uploadOpenaiFile(call: Call): Reply {
  if (!call.contentType.startsWith('multipart/form-data')) {
    throw new Refusal(400, 'Invalid content type: expected multipart/form-data.')
  }
  const parts = parseMultipart(call.body, call.contentType)
  const purpose = parts.find((part) => part.name === 'purpose')?.content.toString('utf8')
  const upload = parts.find((part) => part.name === 'file')
  if (upload === undefined) throw missing('file')
  if (purpose === undefined) throw missing('purpose')
  const file: StoredFile = {
    id: `file-${call.identity.base62(22)}`,
    filename: upload.filename ?? 'upload',
    contentType: upload.contentType,
    purpose,
    createdAt: call.identity.now(),
    content: Buffer.from(upload.content),
  }
  call.memory.files.chat.add(file)
  return jsonReply(200, fileJson(file), { headers: chatHeaders(call.identity) })
}

/** GET /v1/files on the Chat surface */
export function listOpenaiFiles(call: Call): Reply {
  const { query } = call
  const limit = Number(query.get('limit') ?? pageSizeMax)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `Invalid 'limit': expected an integer between 1 and ${pageSizeMax}.`, {
      param: 'limit',
    })
  }
  const newest = call.memory.files.chat.newestFirst()
  const ordered = query.get('order') === 'asc' ? newest.reverse() : newest
  const purpose = query.get('purpose')
  const wanted = ordered.filter((file) => purpose === null || file.purpose === purpose)
  const after = query.get('after')
  const { page, hasMore } = pageAfter(wanted, after, limit)
  const list = {
    object: 'list',
    data: page.map(fileJson),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: hasMore,
  }
  return jsonReply(200, list, { headers: chatHeaders(call.identity) })
}

/** GET /v1/files/{id} on the Chat surface */
export function getOpenaiFile(call: Call): Reply {
  return jsonReply(200, fileJson(requireFile(call)), { headers: chatHeaders(call.identity) })
}

/** GET /v1/files/{id}/content on the Chat surface */
export function getOpenaiFileContent(call: Call): Reply {
  const file = requireFile(call)
  return bytesReply('application/octet-stream', file.content, [
    ['content-disposition', `attachment; filename="${encodeURIComponent(file.filename)}"`],
    ...chatHeaders(call.identity),
  ])
}

/** DELETE /v1/files/{id} on the Chat surface */
export function deleteOpenaiFile(call: Call): Reply {
  const file = requireFile(call)
  call.memory.files.chat.remove(file.id)
  const deleted = { object: 'file', deleted: true, id: file.id }
  return jsonReply(200, deleted, { headers: chatHeaders(call.identity) })
}

function requireFile(call: Call): StoredFile {
  const id = call.params[0] ?? ''
  const file = call.memory.files.chat.find(id)
  if (file === undefined) {
    throw new Refusal(404, `No such File object: ${id}`, { param: 'id' })
  }
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
