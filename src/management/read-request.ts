import { createHash } from 'node:crypto'
import { z } from 'zod'
import { didYouMean, explainIssue, parseOwnJson } from '../api/fields.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BodyReceiver, BodyTimes } from '../http/incoming-request.ts'
import { firstValue, valuesOf } from '../http/raw-headers.ts'
import type { Target } from '../http/validate-head.ts'
import { refuse } from '../kernel/errors.ts'
import type { Idempotency } from '../kernel/idempotency.ts'
import { duplicateNames } from '../metering/json-tokens.ts'
import { IDEMPOTENCY_HEADER, invalid, type Refused, type Route, refused } from './route.ts'

type Sender = Pick<Idempotency, 'accountId' | 'atMs'> & { readonly actorId: string }

type CheckedInput<T> = { readonly kind: 'ok'; readonly value: T } | Refused

export async function readRequest(
  exchange: Exchange,
  { path }: Target,
  route: Route,
  parameters: Parameters,
  sender: Sender,
  times: BodyTimes,
) {
  const query = checkQuery(route.query, parameters)
  if (query.kind === 'refused') return query
  if (route.body === null) {
    // Unread bytes would hide that the client has left. The answer may take long, so this has no time limit.
    exchange.req.discard(Infinity)
    return { kind: 'request', query: query.value, body: null, idempotency: null } as const
  }
  const received = await receiveOwnBody(exchange, times, route.bodyBytesMax)
  if (received.kind !== 'body') return received
  const body = checkBody(route.body, received.bytes)
  if (body.kind === 'refused') return body
  const idempotency = route.repeatable ? readIdempotencyKey(exchange, path, received.bytes, sender) : NOTHING
  if (idempotency.kind === 'refused') return idempotency
  return { kind: 'request', query: query.value, body: body.value, idempotency: idempotency.value } as const
}

export type Parameters = ReadonlyMap<string, string>

/** Parses the query. Refuses a parameter that is repeated or cannot be decoded, because it is ambiguous. */
export function parseQuery(query: string): CheckedInput<Parameters> {
  const values = new Map<string, string>()
  for (const pair of query.slice(1).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const rawName = equals === -1 ? pair : pair.slice(0, equals)
    const name = decodeParameter(rawName)
    if (name === null) return refuseEncoding(rawName)
    if (values.has(name)) return invalid(name, `${name} is given more than once. Send it once.`)
    const value = decodeParameter(equals === -1 ? '' : pair.slice(equals + 1))
    if (value === null) return refuseEncoding(name)
    values.set(name, value)
  }
  return { kind: 'ok', value: values }
}

const NO_QUERY = z.strictObject({})

export function checkQuery(schema: z.ZodType | null, parameters: Parameters): CheckedInput<unknown> {
  return checkInput(schema ?? NO_QUERY, Object.fromEntries(parameters), 'is not a parameter of this endpoint')
}

function refuseEncoding(name: string): Refused {
  return invalid(name, `${name} is not percent-encoded UTF-8. Encode it.`)
}

/** Decodes a parameter as in forms, where a plus is a space. */
function decodeParameter(text: string): string | null {
  // Raw non-ASCII bytes have no known encoding.
  if (/[^\x21-\x7e]/.test(text)) return null
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Validates a body. An absent body counts as `{}`. */
export function checkBody(schema: z.ZodType, bytes: Buffer): CheckedInput<unknown> {
  let text = '{}'
  let json: unknown = {}
  try {
    if (bytes.length > 0) text = utf8.decode(bytes)
    json = parseOwnJson(text)
  } catch {
    return refused('bad_request', 'The body is not JSON in UTF-8. Send a JSON object.')
  }
  // JSON.parse uses the last of two values: `"monthly_budget_usd":5` followed by null would create a key without a cap.
  const [twice] = duplicateNames(text)
  if (twice !== undefined) return invalid(twice, `${twice} is given twice. Send it once.`)
  return checkInput(schema, json, 'is not a field of this request')
}

/** Names the first invalid field and the value that it should have. */
function checkInput<T>(schema: z.ZodType<T>, input: unknown, unknownField: string): CheckedInput<T> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return { kind: 'ok', value: parsed.data }
  const [issue] = parsed.error.issues
  const path = issue?.path ?? []
  if (issue?.code === 'unrecognized_keys') {
    const field = [...path, issue.keys[0]].join('.')
    const known = path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
    return invalid(field, `${field} ${unknownField}.${didYouMean(field, known)}`)
  }
  if (path.length === 0) return refused('bad_request', 'The body must be a JSON object.')
  // If an entry of a list is wrong, name the list.
  const field = path.filter((part) => typeof part !== 'number').join('.')
  const value = valueAt(input, path)
  const message = value === undefined ? `${field} is required.` : explainIssue(issue, value)
  return invalid(field, message)
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<PropertyKey, unknown>)[name]
  }
  return value
}

const NOTHING = { kind: 'ok', value: null } as const

function readIdempotencyKey(
  { method, headers }: Exchange,
  path: string,
  body: Buffer,
  sender: Sender,
): CheckedInput<Idempotency | null> {
  const refuseHeader = (message: string) => invalid(IDEMPOTENCY_HEADER, `${IDEMPOTENCY_HEADER} ${message}`)
  const names = new Set(valuesOf(headers, IDEMPOTENCY_HEADER.toLowerCase()))
  if (names.size > 1) return refuseHeader('is given twice with different values. Send one.')
  const [name] = names
  if (name === undefined) return NOTHING
  if (!/^[\x20-\x7e]{1,255}$/.test(name))
    return refuseHeader('must have 1 to 255 printable ASCII characters.')
  // Methods and paths contain no space or line break, so the concatenation is unambiguous.
  const sent = body.length === 0 ? '{}' : body
  const fingerprint = createHash('sha256').update(`${method} ${path}\n`).update(sent).digest()
  const { accountId, actorId, atMs } = sender
  // Two people may choose the same key for the same request.
  return { kind: 'ok', value: { accountId, name: `${actorId} ${name}`, fingerprint, atMs } }
}

type OwnBody = { readonly kind: 'body'; readonly bytes: Buffer } | Refused | { readonly kind: 'client_left' }

export function receiveOwnBody(exchange: Exchange, times: BodyTimes, bytesMax: number): Promise<OwnBody> {
  return new Promise((resolve) => {
    const { req, res, headers } = exchange
    if (res.isOver) return resolve({ kind: 'client_left' })
    if (Number(firstValue(headers, 'content-length') ?? 0) > bytesMax) return resolve(tooLarge(bytesMax))
    const chunks: Buffer[] = []
    let bytes = 0

    function finish(result: OwnBody): void {
      req.release()
      resolve(result)
    }

    const receiver: BodyReceiver = {
      data(chunk) {
        bytes += chunk.length
        if (bytes > bytesMax) finish(tooLarge(bytesMax))
        else chunks.push(Buffer.from(chunk))
        return true
      },
      end: () => finish({ kind: 'body', bytes: Buffer.concat(chunks) }),
      broken(tooSlow) {
        if (tooSlow === null) finish({ kind: 'client_left' })
        else finish({ kind: 'refused', refusal: refuse('request_timeout', tooSlow, { close: true }) })
      },
    }

    res.writeContinue()
    req.receive(receiver, times)
  })
}

function tooLarge(bytesMax: number): Refused {
  return refused('body_too_large', `The body is larger than ${bytesMax / 1024} KiB. Send a smaller one.`)
}
