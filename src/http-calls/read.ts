import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CountableInput, NOTHING_COUNTABLE } from '../calls/estimates.ts'
import { type ByteBudget, type DecodingQueue, type KeyShare, ReservedBytes } from '../calls/key-shares.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BodyTimes } from '../http/incoming-request.ts'
import { codingOf, firstValue } from '../http/raw-headers.ts'
import { ChunkList } from '../kernel/chunk-list.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { PIECE_BYTES } from '../metering/reading-pace.ts'
import { NOT_READ, type RequestFacts } from '../metering/request-facts.ts'
import { ambiguityAtEndpoint, unreadable } from '../providers/ambiguity.ts'
import { BatchEntries, type BoundEntry } from '../providers/batch-requests.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { bodyHeadOf, RequestReader } from '../providers/read-request.ts'
import { modelAsked } from '../providers/request-members.ts'

/** If a body is not complete after this time, the key is checked before the rest is read. */
const BODY_MS_BEFORE_KEY_CHECK = 100

/** Bodies up to this size always fit, unless the same key already has many of them. */
const SMALL_BODY_BYTES = 1024 * 1024

export class HeldBody {
  readonly #large: ReservedBytes
  /** The first parts of bodies are counted separately, so that large bodies of a key cannot crowd out small ones. */
  readonly #small: ReservedBytes
  readonly #chunks = new ChunkList()
  length = 0

  constructor(memory: ByteBudget, { name, smallName }: Pick<KeyShare, 'name' | 'smallName'>) {
    this.#large = new ReservedBytes(memory, name)
    this.#small = new ReservedBytes(memory, smallName)
  }

  append(chunk: Buffer): boolean {
    const length = this.length + chunk.length
    const isSmall = length <= SMALL_BODY_BYTES
    if (!(isSmall ? this.#small : this.#large).tryReserve(chunk.length, isSmall)) return false
    this.length = length
    this.#chunks.append(chunk)
    return true
  }

  pieces(): readonly Buffer[] {
    return this.#chunks.all()
  }

  /** Frees the memory. Idempotent. */
  [Symbol.dispose](): void {
    this.#small.release()
    this.#large.release()
    this.#chunks.clear()
  }
}

interface ReceiveOptions {
  readonly memory: ByteBudget
  readonly times: BodyTimes
}

/** Called with each chunk, as it arrives or from the buffered body. */
type ChunkObserver = Pick<RequestReader, 'write'>

type NotRead =
  | ({ readonly kind: 'refused'; readonly modelAsked?: string | null } & Denial)
  | { readonly kind: 'client_left' }

/** `refusal` is null if the call may continue. */
type CheckKey = (
  isPaid: boolean,
) => Promise<{ readonly refusal: Refusal | null; readonly balanceNanos: Nanos | null }>

type Received = { readonly kind: 'received'; readonly body: HeldBody } | NotRead

/** Reads the whole body, within limits of size, idle time and rate. A slow client's key is checked meanwhile. */
export function receiveBody(
  exchange: Exchange,
  { memory, times }: ReceiveOptions,
  share: KeyShare,
  observer: ChunkObserver | null,
  checkKey: () => ReturnType<CheckKey>,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { req } = exchange
    if (exchange.res.isOver) return resolve(CLIENT_LEFT)
    const body = new HeldBody(memory, share)
    let keyTimer: NodeJS.Timeout | undefined
    let isOver = false
    let bytesInTurn = 0

    function finish(result: Received | null): void {
      if (isOver) return
      isOver = true
      clearTimeout(keyTimer)
      req.release()
      if (result?.kind !== 'received') body[Symbol.dispose]()
      if (result !== null) resolve(result)
    }

    function fail(error: unknown): void {
      finish(null)
      reject(error)
    }

    function data(chunk: Buffer): boolean {
      if (body.length + chunk.length > limits.bodyBytesMax) finish(refused(TOO_LARGE))
      if (isOver) return true
      const pause = observer === null ? null : share.pace.pause()
      const unreadFrom = pause === null ? Infinity : body.pieces().length
      if (pause === null) observer?.write(chunk)
      if (!body.append(chunk)) {
        finish(refused(NO_MEMORY))
        return true
      }
      // Read one piece per iteration of the event loop, so that other calls can run.
      bytesInTurn += chunk.length
      if (pause === null && (observer === null || bytesInTurn < PIECE_BYTES)) return true
      bytesInTurn = 0
      const readUnread = () => {
        // The memory of a body that is over belongs to other bodies.
        if (!isOver) for (const piece of body.pieces().slice(unreadFrom)) observer?.write(piece)
      }
      const read = pause?.then(readUnread) ?? nextTurn()
      read.then(() => req.resume(), fail)
      return false
    }

    function broken(tooSlow: string | null): void {
      finish(tooSlow === null ? CLIENT_LEFT : refused(refuse('request_timeout', tooSlow, { close: true })))
    }

    req.receive({ data, end: () => finish({ kind: 'received', body }), broken }, times)
    // The timer starts after the piece that is being read now.
    queueMicrotask(() => {
      if (isOver) return
      keyTimer = setTimeout(() => {
        checkKey().then(({ refusal, balanceNanos }) => {
          if (refusal !== null) finish({ kind: 'refused', refusal, balanceNanos })
        }, fail)
      }, BODY_MS_BEFORE_KEY_CHECK)
    })
  })
}

const CLIENT_LEFT = { kind: 'client_left' } as const

function refused(refusal: Refusal): NotRead {
  return { kind: 'refused', refusal, balanceNanos: null }
}

const NO_MEMORY = refuse(
  'no_memory',
  'The gateway has no memory left for this request body, because other large bodies are waiting. Retry in a second.',
)

const TOO_LARGE = refuse(
  'body_too_large',
  `The request body is larger than ${limits.bodyBytesMax / 1024 / 1024} MiB. Send a smaller one.`,
)

const BODY_BYTES_BEFORE_KEY_CHECK = 64 * 1024

/** The request body for upstream. `lengthBytes` is null if the client sent it chunked. */
export type RequestBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'held'; readonly held: HeldBody; readonly lengthBytes: number | null }
  | { readonly kind: 'flowing'; readonly lengthBytes: number | null }

export interface ReadBody {
  readonly kind: 'read'
  readonly body: RequestBody
  readonly facts: RequestFacts
  /** Why the body cannot be read. Limited keys are refused. */
  readonly unreadable: string | null
}

export interface ReadOptions extends ReceiveOptions {
  readonly decoding: DecodingQueue
  readonly boundEntry: BoundEntry
}

function announcedBody(exchange: Exchange): { present: boolean; lengthBytes: number | null } {
  if (firstValue(exchange.headers, 'transfer-encoding') !== undefined)
    return { present: true, lengthBytes: null }
  const length = Number(firstValue(exchange.headers, 'content-length') ?? 0)
  return { present: length > 0, lengthBytes: length }
}

/** Whether the body is or may become so large that the key is checked first. */
export function checkKeyBeforeBody(exchange: Exchange): boolean {
  if (exchange.res.expectsContinue) return true
  const { present, lengthBytes } = announcedBody(exchange)
  if (!present) return false
  return (lengthBytes ?? Infinity) > BODY_BYTES_BEFORE_KEY_CHECK || isEncoded(exchange)
}

function isEncoded({ headers }: Exchange): boolean {
  return codingOf(firstValue(headers, 'content-encoding')) !== 'identity'
}

/** Finds the facts that admission needs. Only bodies that name a model or a limit are buffered for it. */
export async function readBody(
  exchange: Exchange,
  endpoint: Endpoint | null,
  options: ReadOptions,
  share: KeyShare,
  checkKey: CheckKey,
): Promise<ReadBody | NotRead> {
  const { present, lengthBytes } = announcedBody(exchange)
  if (present) exchange.res.writeContinue()
  const unread = { kind: 'read', facts: NOT_READ, unreadable: null } as const
  const isPaid = endpoint?.billing === 'metered'
  if (!present) {
    const needsBody = isPaid && endpoint.reads !== 'nothing'
    return { ...unread, body: { kind: 'none' }, unreadable: needsBody ? unreadable('empty').detail : null }
  }
  if (endpoint === null || endpoint.reads === 'nothing')
    return { ...unread, body: { kind: 'flowing', lengthBytes } }
  if (lengthBytes !== null && lengthBytes > limits.bodyBytesMax) return refused(TOO_LARGE)

  const isBatch = endpoint.model === 'batch_entries'
  const watch = isBatch ? new BatchEntries(endpoint.surface, options.boundEntry) : undefined
  const reader = new RequestReader(endpoint, bodyHeadOf(exchange.headers), watch, share.pace)
  const encoded = isEncoded(exchange)
  const observer = encoded ? null : reader
  const received = await receiveBody(exchange, options, share, observer, () => checkKey(isPaid))
  if (received.kind !== 'received') return received
  const held = received.body
  const facts = await (encoded
    ? options.decoding.run(share, exchange.res, () => readEncoded(exchange, held, reader))
    : reader.end())
  if (facts === null) {
    held[Symbol.dispose]()
    return { kind: 'client_left' }
  }
  const ambiguity = ambiguityAtEndpoint(endpoint, facts)
  const detail = ambiguity?.detail ?? null
  if (detail === unreadable('too_dense').detail) {
    held[Symbol.dispose]()
    return refused(TOO_DENSE)
  }
  if (detail !== null && ambiguity?.refuse === 'always') {
    held[Symbol.dispose]()
    // A body that can be read in two ways is refused to every key. But if the key is unusable, refuse it for that.
    const { refusal, balanceNanos } = await checkKey(false)
    const ambiguous = refusal ?? refuse('bad_request', detail)
    return { kind: 'refused', refusal: ambiguous, balanceNanos, modelAsked: modelAsked(facts) }
  }
  return { kind: 'read', body: { kind: 'held', held, lengthBytes }, facts, unreadable: detail }
}

/** Waits for the whole body: a slow client must not occupy a decoding slot. Null if the client left. */
async function readEncoded(
  exchange: Exchange,
  held: HeldBody,
  reader: RequestReader,
): Promise<RequestFacts | null> {
  for (const piece of held.pieces()) {
    if (exchange.res.isOver) return null
    await reader.write(piece)
  }
  const facts = await reader.end()
  return exchange.res.isOver ? null : facts
}

const TOO_DENSE = refuse(
  'body_too_large',
  `The request body decompresses to more than ${limits.decodedRatioMax} times its size, or to more than ${limits.decodedTokensPerByteMax} JSON tokens per byte. Send it uncompressed.`,
)

export function countableInput({ headers }: Exchange, { body, facts }: ReadBody): CountableInput {
  if (body.kind !== 'held') return NOTHING_COUNTABLE
  const { held } = body
  const isPlain = codingOf(firstValue(headers, 'content-encoding')) === 'identity'
  return {
    lengthBytes: isPlain || facts.kind === 'unreadable' ? held.length : facts.bytes,
    formType: facts.kind === 'form' ? (firstValue(headers, 'content-type') ?? '') : null,
    pieces: isPlain ? held.pieces() : [],
    facts,
  }
}
