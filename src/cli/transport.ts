import type { Secret } from '../kernel/secret.ts'
import { Failure } from './command.ts'

/** A question to the management API. */
export interface Asked {
  /** Parameters that are undefined are not sent. */
  readonly query?: Readonly<Record<string, string | undefined>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** The same command under the same key is done once. */
  readonly idempotencyKey?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * The way to the management API: over HTTP, or in this process on the data directory. Both are the same API: each rule and
 * each message is the gateway's own.
 */
export interface Transport {
  /** The gateway's address or the place of the books, for messages. */
  readonly place: string
  send(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, asked: Asked): Promise<Answer>
  /** For answers that may be too large for the memory. A caller that stops reading ends the stream. */
  stream(
    path: string,
    query: NonNullable<Asked['query']>,
    signal?: AbortSignal,
  ): Promise<{ readonly status: number; readonly chunks: AsyncIterable<Uint8Array> }>
  close(): Promise<void>
}

/** The query with its `?`, or an empty text. */
export function queryText(query: Asked['query'] = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** The gateway could not be reached, or the connection broke. */
export class Unreachable extends Failure {}

const ASK_TIMEOUT_MS = 60_000
/** Ten thousand rows of usage, the most that the API answers at once, are four MiB. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** The management API of a gateway, over HTTP with an admin key. */
export function createHttpTransport(base: URL, adminKey: Secret): Transport {
  const place = base.href.replace(/\/$/, '')

  async function request(method: string, path: string, asked: Asked, signal: AbortSignal): Promise<Response> {
    const { query, body, idempotencyKey } = asked
    const response = await fetch(`${place}${path}${queryText(query)}`, {
      method,
      signal,
      // Redirects are not followed: the key is for this address and for no other.
      redirect: 'manual',
      headers: {
        authorization: `Bearer ${adminKey.reveal()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (response.status >= 300 && response.status < 400) {
      const where = response.headers.get('location') ?? 'another address'
      throw new Failure(`${place} refers to ${where}. Name the address of the gateway itself with --url.`)
    }
    return response
  }

  return {
    place,
    async send(method, path, asked) {
      try {
        return await readWhole(await request(method, path, asked, AbortSignal.timeout(ASK_TIMEOUT_MS)))
      } catch (error) {
        throw explain(error, place, asked.idempotencyKey)
      }
    },
    async stream(path, query, signal = new AbortController().signal) {
      try {
        const response = await request('GET', path, { query }, signal)
        return { status: response.status, chunks: explained(response.body ?? [], place) }
      } catch (error) {
        throw explain(error, place)
      }
    },
    async close() {},
  }
}

async function readWhole(response: Response): Promise<Answer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Failure('The answer is larger than 64 MiB. Ask for less at once.')
    chunks.push(chunk)
  }
  return { status: response.status, headers: response.headers, text: Buffer.concat(chunks).toString() }
}

async function* explained(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, place: string) {
  try {
    yield* chunks
  } catch (error) {
    throw explain(error, place)
  }
}

function explain(error: unknown, place: string, idempotencyKey?: string): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error
  const { cause } = error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  const reason = cause instanceof Error ? cause.message || code : error.message
  if (NOT_TRUSTED.test(code)) {
    return new Unreachable(
      `${place} has a certificate that is not trusted here: ${reason}. Use a host that it names, and where no public ` +
        'authority vouches for it, set NODE_EXTRA_CA_CERTS to its file, or to that of its authority.',
    )
  }
  if (NOT_CONNECTED.test(code)) {
    return new Unreachable(
      `${place} cannot be reached: ${reason}. Is the gateway running there? Without --url the command works on the ` +
        'data directory.',
    )
  }
  const again = idempotencyKey === undefined ? 'Try again.' : repeatOnce(idempotencyKey)
  return new Unreachable(`The connection to ${place} broke off: ${reason}. ${again}`)
}

/** How to repeat a command of which nobody knows whether it was done. */
export function repeatOnce(idempotencyKey: string): string {
  return `It may have been done. Repeat the command with --idempotency-key ${idempotencyKey}: it is done once.`
}

/** Codes of errors, here and in NOT_CONNECTED, before any request was sent. */
const NOT_TRUSTED = /CERT|LEAF_SIGNATURE/
const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$|_TLS_|_SSL_/
