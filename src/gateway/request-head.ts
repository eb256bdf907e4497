import type { Readable } from 'node:stream'
import { NameMemo } from '../http/name-memo.ts'

/** A request of which nothing may be written: what upstream reads would not be what was meant. */
export class Unsendable extends Error {
  readonly code = 'TOLLGATE_UNSENDABLE'
}

export interface RequestHead {
  /** Request line and header lines; framing and the empty line are still to come. */
  readonly text: string
  /** Of the body. Null: a stream that is sent in chunks. */
  readonly lengthBytes: number | null
}

export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  readonly headers: string[]
  readonly body: UpstreamBody
}

/** Bytes, in one piece or several, go with their length; a stream goes chunked unless a length is given. */
export type UpstreamBody = Buffer | readonly Buffer[] | Readable | null

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\xff]*$/
/** One byte per character leaves here, so what does not fit into one could become a line break on its way. */
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/

const EXPECTS_BODY = /^(?:POST|PUT|PATCH|QUERY|PROPFIND|PROPPATCH)$/

type Role = 'line' | 'host' | 'length' | 'refused'

/** Lines of this hop alone, which are written here or not at all. */
const REFUSED = /^(?:transfer-encoding|connection|keep-alive|upgrade|expect)$/

const roles = new NameMemo<Role>((name) => {
  if (name === 'host') return 'host'
  if (name === 'content-length') return 'length'
  return REFUSED.test(name) || !TOKEN.test(name) ? 'refused' : 'line'
})

/**
 * The head as it is written: host and connection first, then the lines as they are given, framing last. The parser
 * lets nothing through that could not be sent; this is for the day it does.
 */
export function composeHead({ method, target, headers, body }: UpstreamRequest): RequestHead | Unsendable {
  if (!TOKEN.test(method) || !TARGET.test(target)) return new Unsendable('a request line that cannot be sent')
  let host: string | null = null
  let lengthGiven: string | null = null
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (NO_VALUE.test(value)) return new Unsendable('a header value that cannot be sent')
    const role = roles.get(name)
    if (role === 'line') lines += `${name}: ${value}\r\n`
    else if (role === 'host' && host === null) host = value
    else if (role === 'length' && lengthGiven === null) lengthGiven = value
    else return new Unsendable('a header line that cannot be sent')
  }
  if (host === null) return new Unsendable('a request without a host')
  const lengthBytes = lengthOf(body, lengthGiven)
  if (lengthBytes instanceof Unsendable) return lengthBytes
  return {
    text: `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${lines}`,
    lengthBytes,
  }
}

/** A length, none or chunks, and the empty line. A length of nothing is told only where a body is expected. */
export function framingOf(method: string, lengthBytes: number | null): string {
  if (lengthBytes === null) return 'transfer-encoding: chunked\r\n\r\n'
  if (lengthBytes === 0 && !EXPECTS_BODY.test(method)) return '\r\n'
  return `content-length: ${lengthBytes}\r\n\r\n`
}

function lengthOf(body: UpstreamBody, given: string | null): number | null | Unsendable {
  if (given !== null && !/^\d{1,15}$/.test(given)) return new Unsendable('a length that is no number')
  const announced = given === null ? null : Number(given)
  const actual = bytesIn(body)
  if (actual === null) return announced
  if (announced !== null && announced !== actual)
    return new Unsendable('a body that is not as long as it says')
  return actual
}

/** Null where only its end will tell. */
function bytesIn(body: UpstreamBody): number | null {
  if (body === null) return 0
  if (Buffer.isBuffer(body)) return body.length
  if (!Array.isArray(body)) return null
  let bytes = 0
  for (const piece of body as readonly Buffer[]) bytes += piece.length
  return bytes
}
