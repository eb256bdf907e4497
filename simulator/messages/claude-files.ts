import type { Call } from '../call.ts'
import type { StoredFile } from '../file-store.ts'
import { parseMultipart } from '../multipart.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { messagesHeaders, newMessagesRequestId } from './messages-headers.ts'
import { requireVersion } from './validate-messages.ts'

/** POST /v1/files on the Messages surface */
export function uploadClaudeFile(call: Call): Reply {
  requireVersion(call)
  const part = parseMultipart(call.body, call.contentType).find((candidate) => candidate.name === 'file')
  if (part === undefined) throw new Refusal(400, 'file: Field required')
  const file: StoredFile = {
    id: `file_011C${call.identity.base62(20)}`,
    filename: part.filename ?? 'upload',
    contentType: part.contentType,
    purpose: '',
    createdAt: call.identity.now(),
    content: Buffer.from(part.content),
  }
  call.memory.files.messages.add(file)
  return reply(call, fileJson(file))
}

/** GET /v1/files on the Messages surface. All files fit on one page. */
export function listClaudeFiles(call: Call): Reply {
  requireVersion(call)
  const files = call.memory.files.messages.newestFirst()
  return reply(call, {
    data: files.map(fileJson),
    has_more: false,
    first_id: files[0]?.id ?? null,
    last_id: files.at(-1)?.id ?? null,
    next_page: null,
  })
}

/** GET /v1/files/{id} on the Messages surface */
export function getClaudeFile(call: Call): Reply {
  return reply(call, fileJson(requireFile(call)))
}

/** GET /v1/files/{id}/content on the Messages surface: a file that a user uploaded cannot be downloaded there. */
export function getClaudeFileContent(call: Call): Reply {
  const file = requireFile(call)
  throw new Refusal(400, `File '${file.id}' is not downloadable`, { code: 'file_not_downloadable' })
}

/** DELETE /v1/files/{id} on the Messages surface */
export function deleteClaudeFile(call: Call): Reply {
  const file = requireFile(call)
  call.memory.files.messages.remove(file.id)
  return reply(call, { id: file.id, type: 'file_deleted' })
}

function requireFile(call: Call): StoredFile {
  requireVersion(call)
  const id = call.params[0] ?? ''
  const file = call.memory.files.messages.find(id)
  if (file === undefined) throw new Refusal(404, `File not found: ${id}`)
  return file
}

function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, {
    headers: messagesHeaders(call.identity, newMessagesRequestId(call.identity)),
  })
}

function fileJson(file: StoredFile): object {
  return {
    type: 'file',
    id: file.id,
    filename: file.filename,
    mime_type: file.contentType,
    size_bytes: file.content.length,
    created_at: file.createdAt.toISOString(),
    downloadable: false,
    expires_at: null,
  }
}
