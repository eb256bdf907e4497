import { STATUS_CODES } from 'node:_http_server'
import type { Duplex } from 'node:stream'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { HEAD_TIMEOUT } from './client-connection.ts'
import type { WholeReply } from './exchange.ts'
import { TOO_MANY_LINES, type WireError } from './message-reader.ts'

/** What to tell a client whose bytes are not a request, or null if there is nobody left to tell. */
export function explainClientError(error: WireError): Refusal | null {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
    case TOO_MANY_LINES:
      return refuse('head_too_large', 'The request head is larger than 64 KiB or has more than 1,000 lines.')
    case HEAD_TIMEOUT:
      return refuse('request_timeout', 'The request head did not arrive in time.')
    default:
      if (!error.code.startsWith('HPE_')) return null
      return refuse('bad_request', 'The request is not well-formed HTTP/1.1.')
  }
}

/** A response on the bare socket, for when there is no request to reply to. The connection closes. */
export function writeRawReply(
  socket: Duplex,
  reply: WholeReply,
  requestIdName: string,
  requestId: string,
): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? ''}`]
  const headers = [...reply.headers, requestIdName, requestId, 'connection', 'close']
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), reply.body]))
  // A peer that never reads its answer nor closes must not keep the socket.
  const timer = setTimeout(() => socket.destroy(), 1_000)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}
