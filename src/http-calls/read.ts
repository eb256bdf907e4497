import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CountableInput, NOTHING_COUNTABLE } from '../calls/estimates.ts'
import { type ByteBudget, type DecodingQueue, type KeyShare, ReservedBytes } from '../calls/key-shares.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BodyReceiver, BodyTimes, IncomingRequest } from '../http/incoming-request.ts'
import { codingOf, firstValue } from '../http/raw-headers.ts'
import { ChunkList } from '../kernel/chunk-list.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { PIECE_BYTES } from '../metering/reading-pace.ts'
import { ambiguityAtEndpoint, unreadable } from '../providers/ambiguity.ts'
import { BatchEntries, type BoundEntry } from '../providers/batch-requests.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { bodyHeadOf, RequestReader } from '../providers/read-request.ts'
import { modelAsked, NOT_READ, type RequestFacts } from '../providers/request-facts.ts'

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
  options: ReceiveOptions,
  share: KeyShare,
  observer: ChunkObserver | null,
  checkKey: () => ReturnType<CheckKey>,
): Promise<Received> {
  if (exchange.res.isOver) return Promise.resolve(CLIENT_LEFT)
  const receiving = new ReceivedBody(exchange.req, new HeldBody(options.memory, share), share, observer)
  exchange.req.receive(receiving, options.times)
  // The timer starts after the piece that is being read now.
  queueMicrotask(() => receiving.checkKeyLater(checkKey))
  return receiving.whole
}

class ReceivedBody implements BodyReceiver {
  readonly #req: IncomingRequest
  readonly #body: HeldBody
  readonly #share: KeyShare
  readonly #observer: ChunkObserver | null
  readonly #result = Promise.withResolvers<Received>()
  #keyTimer: NodeJS.Timeout | undefined
  #isOver = false
  #bytesInTurn = 0

  constructor(req: IncomingRequest, body: HeldBody, share: KeyShare, observer: ChunkObserver | null) {
    this.#req = req
    this.#body = body
    this.#share = share
    this.#observer = observer
  }

  get whole(): Promise<Received> {
    return this.#result.promise
  }

  checkKeyLater(checkKey: () => ReturnType<CheckKey>): void {
    if (this.#isOver) return
    this.#keyTimer = setTimeout(() => {
      checkKey().then(({ refusal, balanceNanos }) => {
        if (refusal !== null) this.#finish({ kind: 'refused', refusal, balanceNanos })
      }, this.#fail)
    }, BODY_MS_BEFORE_KEY_CHECK)
  }

  data(chunk: Buffer): boolean {
    const [body, observer] = [this.#body, this.#observer]
    if (body.length + chunk.length > limits.bodyBytesMax) this.#finish(refused(TOO_LARGE))
    if (this.#isOver) return true
    const pause = observer === null ? null : this.#share.pace.pause()
    const unreadFrom = pause === null ? Infinity : body.pieces().length
    if (pause === null) observer?.write(chunk)
    if (!body.append(chunk)) {
      this.#finish(refused(NO_MEMORY))
      return true
    }
    // Read one piece per iteration of the event loop, so that other calls can run.
    this.#bytesInTurn += chunk.length
    if (pause === null && (observer === null || this.#bytesInTurn < PIECE_BYTES)) return true
    this.#bytesInTurn = 0
    const readUnread = () => {
      // The memory of a body that is over belongs to other bodies.
      if (!this.#isOver) for (const piece of body.pieces().slice(unreadFrom)) observer?.write(piece)
    }
    const read = pause?.then(readUnread) ?? nextTurn()
    read.then(() => this.#req.resume(), this.#fail)
    return false
  }

  end(): void {
    this.#finish({ kind: 'received', body: this.#body })
  }

  broken(tooSlow: string | null): void {
    this.#finish(
      tooSlow === null ? CLIENT_LEFT : refused(refuse('request_timeout', tooSlow, { close: true })),
    )
  }

  #finish(result: Received | null): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#keyTimer)
    this.#req.release()
    if (result?.kind !== 'received') this.#body[Symbol.dispose]()
    if (result !== null) this.#result.resolve(result)
  }

  readonly #fail = (error: unknown): void => {
    this.#finish(null)
    this.#result.reject(error)
  }
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
