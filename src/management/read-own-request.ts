import type { z } from 'zod'
import type { Exchange } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import type { Target } from '../http/judge-head.ts'
import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Once } from '../kernel/once.ts'
import { type Checked, checkInput, refused } from './check-input.ts'
import { checkQuery } from './check-query.ts'
import { findRepeatedName } from './find-repeated-name.ts'
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

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads and checks what the route takes: the query, then the body, then the name of the command. */
export async function readOwnRequest(
  exchange: Exchange,
  target: Target,
  route: Route,
  sender: Sender,
  bodyTimes: BodyTimes,
): Promise<ReadRequest> {
  const query = checkQuery(route.query, target.query)
  if (query.kind === 'refused') return query
  if (route.body === null) {
    // Nothing is expected here. What comes all the same must not keep us from seeing that the client left.
    exchange.req.discard()
    return { kind: 'request', query: query.value, body: null, once: null }
  }
  const received = await readOwnBody(exchange, bodyTimes)
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
  if (bytes.length > limits.ownBodyBytesMax) return { kind: 'refused', refusal: refuseTooLarge() }
  return checkCommand(message, target.path, route, sender, query.value, bytes)
}

function checkCommand(
  message: Pick<Exchange, 'method' | 'headers'>,
  path: string,
  route: Route,
  sender: Sender,
  query: unknown,
  bytes: Buffer,
): CheckedRequest {
  if (route.body === null) return { kind: 'request', query, body: null, once: null }
  const body = checkBody(route.body, bytes)
  if (body.kind === 'refused') return body
  if (!route.repeatable) return { kind: 'request', query, body: body.value, once: null }
  const once = readOnce(message, path, bytes, sender)
  if (once.kind === 'refused') return once
  return { kind: 'request', query, body: body.value, once: once.value }
}

/** An absent body is `{}`. */
function checkBody(schema: z.ZodType, bytes: Buffer): Checked<unknown> {
  if (bytes.length === 0) return checkInput(schema, {}, 'body')
  let text: string
  let json: unknown
  try {
    text = utf8.decode(bytes)
    json = parseOwnJson(text)
  } catch {
    return refused('The body is not JSON in UTF-8.')
  }
  const twice = findRepeatedName(text, json)
  if (twice !== null) return refused(`${twice} is there twice.`, twice)
  return checkInput(schema, json, 'body')
}
