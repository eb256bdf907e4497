import type { CallCursor } from '../ledger/request-log.ts'

const PLACE = /^(\d{1,15})\.(req_[0-9A-HJKMNP-TV-Z]{26})$/

/** A place in the log as `next` and `after` show it. Encoded, so that nobody takes it for something to be made up. */
export function formatCursor({ startedAtMs, requestId }: CallCursor): string {
  return Buffer.from(`${startedAtMs}.${requestId}`).toString('base64url')
}

export function parseCursor(text: string): CallCursor | null {
  const [, startedAtMs, requestId] = PLACE.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? []
  if (startedAtMs === undefined || requestId === undefined) return null
  const cursor = { startedAtMs: Number(startedAtMs), requestId }
  // Buffer skips characters that are not base64, and a place has one way to be written.
  return formatCursor(cursor) === text ? cursor : null
}
