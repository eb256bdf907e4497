import { scanJson } from '../metering/json-walker.ts'

/** No file's id is longer. */
const FILE_ID_CHARS_MAX = 256

export function isFileId(text: string): boolean {
  return text !== '' && text.length <= FILE_ID_CHARS_MAX
}

/** The reply to an upload is a few hundred bytes; one that is longer is none. */
export const UPLOAD_REPLY_BYTES_MAX = 64 * 1024

/** The id of the file in the whole, decoded reply to its upload, or null if that is not what it is. */
export function uploadedFileId(reply: Uint8Array): string | null {
  if (reply.length > UPLOAD_REPLY_BYTES_MAX) return null
  const scan = scanJson(reply, ['id', 'object'])
  if (scan.kind === 'unreadable' || scan.duplicates.length > 0) return null
  const [id, object] = [scan.members.get('id'), scan.members.get('object')]
  if (object?.kind !== 'string' || object.value !== 'file') return null
  return id?.kind === 'string' && isFileId(id.value) ? id.value : null
}
