import type { Socket } from 'node:net'

/** Serialises header lines. A value with a line break would become two lines, and is a defect of the caller. */
export function serialiseHeaders(lines: readonly string[]): string {
  let text = ''
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] ?? ''
    const value = lines[i + 1] ?? ''
    if (UNSENDABLE.test(name) || UNSENDABLE.test(value))
      throw new Error(`a header line cannot be sent: ${name}`)
    text += `${name}: ${value}\r\n`
  }
  return text
}

/** Headers are sent as Latin-1: characters above 0xff would lose their upper byte, and some would become line breaks. */
export const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

let dateText = ''
let dateUntilMs = 0

/** The `Date` line, cached for a second, and renewed if the clock was set back. */
export function dateLine(nowMs: number): string {
  if (nowMs >= dateUntilMs || nowMs < dateUntilMs - 1_000) {
    dateUntilMs = nowMs - (nowMs % 1_000) + 1_000
    dateText = `Date: ${new Date(nowMs).toUTCString()}\r\n`
  }
  return dateText
}

/** Not STATUS_CODES of node:http, a module that nothing else loads at startup. */
const REASONS = new Map(
  [
    '200 OK|201 Created|202 Accepted|204 No Content|302 Found|303 See Other|304 Not Modified',
    '307 Temporary Redirect|308 Permanent Redirect|400 Bad Request|401 Unauthorized',
    '402 Payment Required|403 Forbidden|404 Not Found|405 Method Not Allowed|406 Not Acceptable',
    '408 Request Timeout|409 Conflict|410 Gone|411 Length Required|412 Precondition Failed',
    '413 Payload Too Large|415 Unsupported Media Type|417 Expectation Failed|422 Unprocessable Entity',
    '426 Upgrade Required|429 Too Many Requests|431 Request Header Fields Too Large',
    '500 Internal Server Error|501 Not Implemented|502 Bad Gateway|503 Service Unavailable',
    '504 Gateway Timeout',
  ].flatMap((line) => line.split('|').map((text) => [Number(text.slice(0, 3)), text.slice(4)] as const)),
)

export function statusLine(status: number, reason: string | undefined): string {
  return `HTTP/1.1 ${status} ${reason ?? REASONS.get(status) ?? 'unknown'}\r\n`
}

/** Writes a head, a chunk and the following text as one. All of them may be reused when this returns. */
export function writeCoalesced(
  socket: Socket,
  head: string,
  chunk: Buffer,
  after: string,
  onWritten?: (error?: Error | null) => void,
): boolean {
  const bytes = Buffer.allocUnsafe(head.length + chunk.length + after.length)
  if (head !== '') bytes.write(head, 'latin1')
  bytes.set(chunk, head.length)
  if (after !== '') bytes.write(after, head.length + chunk.length, 'latin1')
  return socket.write(bytes, onWritten)
}
