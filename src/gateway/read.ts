import { clientLeft, type Exchange, sendContinue } from '../http/exchange.ts'
import { firstValue, type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { codingOf } from '../metering/decode-copy.ts'
import { NOT_READ, type RequestFacts } from '../metering/request-reader.ts'
import { ambiguityFor, unreadable } from '../providers/ambiguity.ts'
import { BatchEntries, type BoundEntry } from '../providers/batch-requests.ts'
import { speechRequest } from '../providers/chat/audio.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { createRequestReader, type RequestReader } from '../providers/read-request.ts'
import { modelAsked } from '../providers/request-members.ts'
import type { CountableInput } from './estimate-usage.ts'
import {
  type HeldBody,
  type ReceiveOptions,
  receiveBody,
  refuseAnnouncedLength,
  type Sender,
} from './held-body.ts'
import type { DecodingTurns } from './key-shares.ts'

const BODY_BYTES_BEFORE_KEY_CHECK = 64 * 1024

/** The request's body for upstream. `lengthBytes` is null where the client sent the body chunked. */
export type RequestBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'held'; readonly held: HeldBody; readonly lengthBytes: number | null }
  | { readonly kind: 'flowing'; readonly lengthBytes: number | null }

export interface ReadBody {
  readonly kind: 'read'
  readonly body: RequestBody
  readonly facts: RequestFacts
  /** Why the body cannot be read: it is refused to keys with limits. */
  readonly unreadable: string | null
}

export type ReadResult =
  | ReadBody
  | ({ readonly kind: 'refused' } & Denial)
  /** The body can be read in two ways: it is refused to every key. */
  | { readonly kind: 'ambiguous'; readonly detail: string; readonly modelAsked: string | null }
  | { readonly kind: 'client_left' }

export interface ReadOptions extends ReceiveOptions {
  readonly decoding: DecodingTurns
  readonly boundEntry: BoundEntry
}

interface Announced {
  readonly present: boolean
  readonly lengthBytes: number | null
}

function announcedBody(exchange: Exchange): Announced {
  if (firstValue(exchange.headers, 'transfer-encoding') !== undefined)
    return { present: true, lengthBytes: null }
  const length = Number(firstValue(exchange.headers, 'content-length') ?? 0)
  return { present: length > 0, lengthBytes: length }
}

/**
 * A body that is large, or may become so here or when it is decoded, is worth asking the store about the key before it is
 * taken in.
 */
export function checkKeyBeforeBody(exchange: Exchange): boolean {
  if (exchange.expectsContinue) return true
  const { present, lengthBytes } = announcedBody(exchange)
  if (!present) return false
  return (lengthBytes ?? Infinity) > BODY_BYTES_BEFORE_KEY_CHECK || isEncoded(exchange)
}

function isEncoded({ headers }: Exchange): boolean {
  return codingOf(firstValue(headers, 'content-encoding')) !== 'identity'
}

/** Header lines that disagree are a danger: we would believe the first, and upstream may believe the last. */
export function hasConflictingValues(headers: RawHeaders, name: string): boolean {
  const values = valuesOf(headers, name)
  return values.length > 1 && new Set(values).size > 1
}

/**
 * Finds the facts in the body that admission needs. Only bodies of endpoints that name a model or a limit in them are
 * held back for that; every other body flows through as it comes.
 */
export async function readBody(
  exchange: Exchange,
  endpoint: Endpoint | null,
  options: ReadOptions,
  sender: Sender,
): Promise<ReadResult> {
  const { present, lengthBytes } = announcedBody(exchange)
  if (present) sendContinue(exchange)
  const unread = { kind: 'read', facts: NOT_READ, unreadable: null } as const
  if (!present) return { ...unread, body: { kind: 'none' } }
  if (endpoint === null || endpoint.reads === 'nothing')
    return { ...unread, body: { kind: 'flowing', lengthBytes } }
  const tooLarge = refuseAnnouncedLength(lengthBytes)
  if (tooLarge !== null) return refused(tooLarge)

  const { headers } = exchange
  const head = {
    contentType: firstValue(headers, 'content-type'),
    contentEncoding: firstValue(headers, 'content-encoding'),
    isDoubtful:
      hasConflictingValues(headers, 'content-type') || hasConflictingValues(headers, 'content-encoding'),
  }
  const isBatch = endpoint.model === 'batch_entries'
  const watch = isBatch ? new BatchEntries(endpoint.surface, options.boundEntry) : undefined
  const reader = createRequestReader(endpoint, head, watch)
  const encoded = isEncoded(exchange)
  const received = await receiveBody(exchange, options, sender, encoded ? null : reader)
  if (received.kind !== 'received') return received
  const held = received.body
  const facts = await (encoded ? readEncoded(exchange, held, reader, sender, options) : reader.end())
  if (facts === null) {
    held.dispose()
    return { kind: 'client_left' }
  }
  const ambiguity = ambiguityFor(endpoint, facts)
  const detail = ambiguity?.detail ?? null
  if (detail === TOO_DENSE) {
    held.dispose()
    return refused(tooDense())
  }
  if (detail !== null && ambiguity?.refuse === 'always') {
    held.dispose()
    return { kind: 'ambiguous', detail, modelAsked: modelAsked(facts) }
  }
  return { kind: 'read', body: { kind: 'held', held, lengthBytes }, facts, unreadable: detail }
}

/**
 * A compressed body is read once it is whole: if it were decoded as it comes, a slow client would keep a decoding turn for as
 * long as it likes. Null if the client has left.
 */
function readEncoded(
  exchange: Exchange,
  held: HeldBody,
  reader: RequestReader,
  { share }: Sender,
  { decoding }: ReadOptions,
): Promise<RequestFacts | null> {
  return decoding.take(share, exchange, async () => {
    for await (const part of held.parts()) {
      if (clientLeft(exchange)) break
      await reader.write(part)
    }
    const facts = await reader.end()
    return clientLeft(exchange) ? null : facts
  })
}

function refused(refusal: Refusal): ReadResult {
  return { kind: 'refused', refusal, balanceNanos: null }
}

function tooDense(): Refusal {
  const message = `The request body decodes to more than ${limits.decodedRatioMax} times its size. Send it uncompressed.`
  return refuse('body_too_large', message)
}

const TOO_DENSE = unreadable('too_dense').detail

export function countableInput({ headers }: Exchange, { body, facts }: ReadBody): CountableInput {
  if (body.kind !== 'held') return NOTHING_COUNTABLE
  const { held } = body
  const isPlain = codingOf(firstValue(headers, 'content-encoding')) === 'identity'
  const isForm = facts.kind === 'form'
  return {
    lengthBytes: isPlain || facts.kind === 'unreadable' ? held.length : facts.bytes,
    isForm,
    get pieces() {
      return isPlain ? held.pieces() : null
    },
    ...(isForm ? { formType: firstValue(headers, 'content-type') ?? '' } : {}),
    speech: speechRequest(facts),
  }
}

const NOTHING_COUNTABLE: CountableInput = {
  lengthBytes: 0,
  isForm: false,
  pieces: null,
  speech: null,
}
