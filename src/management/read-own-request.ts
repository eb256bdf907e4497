import { z } from 'zod'
import type { Exchange } from '../http/exchange.ts'
import type { Target } from '../http/target.ts'
import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Once } from '../kernel/once.ts'
import { type Checked, checkInput, refused } from './check-input.ts'
import { checkQuery } from './check-query.ts'
import { readOnce } from './read-once.ts'
import { readOwnBody, refuseTooLarge } from './read-own-body.ts'
import type { Route } from './route.ts'
import { parseOwnJson } from './usd.ts'

export type CheckedRequest =
  | { readonly kind: 'request'; readonly query: unknown; readonly body: unknown; readonly once: Once | null }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

export type ReadRequest = CheckedRequest | { readonly kind: 'client_left' }

export interface Sender {
  readonly accountId: string
  readonly atMs: number
}

const NO_FIELDS = z.strictObject({})
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads and checks what the route takes: the query, then the body, then the name of the command. */
export async function readOwnRequest(
  exchange: Exchange,
  target: Target,
  route: Route,
  sender: Sender,
  bodyIdleTimeoutMs: number,
): Promise<ReadRequest> {
  const query = checkQuery(route.query, target.query)
  if (query.kind === 'refused') return query
  if (!takesBody(route)) {
    // Nothing is expected here. What comes all the same must not keep us from seeing that the client left.
    exchange.req.resume()
    return { kind: 'request', query: query.value, body: null, once: null }
  }
  const received = await readOwnBody(exchange, bodyIdleTimeoutMs)
  if (received.kind !== 'body') return received
  return checkCommand(exchange, target.path, route, sender, query.value, received.bytes)
}

/** The same for a request that is there already as a whole. */
export function checkOwnRequest(
  message: Pick<Exchange, 'method' | 'headers'>,
  target: Target,
  route: Route,
  sender: Sender,
  bytes: Buffer,
): CheckedRequest {
  const query = checkQuery(route.query, target.query)
  if (query.kind === 'refused') return query
  if (!takesBody(route)) return { kind: 'request', query: query.value, body: null, once: null }
  if (bytes.length > limits.ownBodyBytesMax) return { kind: 'refused', refusal: refuseTooLarge() }
  return checkCommand(message, target.path, route, sender, query.value, bytes)
}

function takesBody(route: Route): boolean {
  return route.body !== null || route.method === 'POST'
}

function checkCommand(
  message: Pick<Exchange, 'method' | 'headers'>,
  path: string,
  route: Route,
  sender: Sender,
  query: unknown,
  bytes: Buffer,
): CheckedRequest {
  const body = checkBody(route.body ?? NO_FIELDS, bytes)
  if (body.kind === 'refused') return body
  if (route.method !== 'POST') return { kind: 'request', query, body: body.value, once: null }
  const once = readOnce(message, path, bytes, sender)
  if (once.kind === 'refused') return once
  return { kind: 'request', query, body: body.value, once: once.value }
}

/** An absent body is `{}`. */
function checkBody(schema: z.ZodType, bytes: Buffer): Checked<unknown> {
  if (bytes.length === 0) return checkInput(schema, {}, 'body')
  let json: unknown
  try {
    json = parseOwnJson(utf8.decode(bytes))
  } catch {
    return refused('The body is not JSON in UTF-8.')
  }
  return checkInput(schema, json, 'body')
}
