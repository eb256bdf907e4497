import { Readable } from 'node:stream'
import { discardRest, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import type { UpstreamBody } from '../http/send-request.ts'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, copyIfBorrowed } from '../kernel/memory.ts'
import { codingOf } from '../metering/content-coding.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { askForUsage } from '../providers/chat-usage/ask-for-usage.ts'
import { UsageCutter } from '../providers/chat-usage/cut-usage-out.ts'
import { type ByteEditor, RecodedStream, type TakeBytes } from '../providers/chat-usage/recode-stream.ts'
import {
  applySplices,
  lengthChange,
  reencodeRequest,
  reencodeWhole,
  type Splice,
  spliceChunks,
} from '../providers/chat-usage/splice-bytes.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { isJsonType, READERS } from '../providers/surfaces.ts'
import type { DecodingTurns, KeyShare } from './key-shares.ts'
import { hasConflictingValues, type RequestBody } from './read.ts'

/** The body as it goes upstream. */
export interface PreparedBody {
  readonly content: UpstreamBody
  /** Announced to upstream; null for a chunked body or none. */
  readonly lengthBytes: number | null
  /** Usage was asked for in the client's place: the usage that this adds to the reply is to be cut out again. */
  readonly usageAdded: boolean
}

/**
 * The one permitted change of a body: a chat stream that would not report its usage is asked to. Every other body, and
 * every other byte of this one, goes as it came.
 */
export async function prepareBody(
  exchange: Exchange,
  body: RequestBody,
  facts: RequestFacts,
  endpoint: Endpoint | null,
  settings: {
    readonly injectUsage: boolean
    readonly times: BodyTimes
    /** The turns that keys take at decoding a body and encoding it again. */
    readonly turns: DecodingTurns
    readonly share: KeyShare
    /** Sees the chunks of a body that flows through. */
    look(chunk: Borrowed): void
  },
): Promise<PreparedBody> {
  const splices = settings.injectUsage ? usageSplices(facts, endpoint) : null
  if (splices === null || body.kind !== 'held') {
    const lengthBytes = body.kind === 'none' ? null : body.lengthBytes
    return {
      content: bodyForUpstream(exchange, body, settings.times, settings.look),
      lengthBytes,
      usageAdded: false,
    }
  }
  const coding = codingOf(firstValue(exchange.headers, 'content-encoding'))
  if (typeof coding === 'object') return await encodedAnew(exchange, body, coding.coding, splices, settings)
  const whole = body.lengthBytes === null ? null : body.held.bytes()
  const lengthBytes = body.lengthBytes === null ? null : body.lengthBytes + lengthChange(splices)
  const content =
    whole === null ? Readable.from(spliceChunks(body.held.stream(), splices)) : applySplices(whole, splices)
  return { content, lengthBytes, usageAdded: true }
}

/** A body in memory is encoded in one go, and sent chunked if it came chunked; a body in a file as upstream takes it. */
async function encodedAnew(
  exchange: Exchange,
  { held, lengthBytes }: RequestBody & { readonly kind: 'held' },
  coding: string,
  splices: readonly Splice[],
  { turns, share }: { readonly turns: DecodingTurns; readonly share: KeyShare },
): Promise<PreparedBody> {
  const whole = held.bytes()
  const encoded =
    whole === null ? null : await turns.take(share, exchange, () => reencodeWhole(coding, whole, splices))
  if (encoded !== null && lengthBytes !== null) {
    return { content: encoded, lengthBytes: encoded.length, usageAdded: true }
  }
  const parts = encoded === null ? reencodeRequest(coding, held.stream(), splices) : [encoded]
  return { content: Readable.from(parts), lengthBytes: null, usageAdded: true }
}

function usageSplices(facts: RequestFacts, endpoint: Endpoint | null): readonly Splice[] | null {
  if (facts.kind !== 'json' || endpoint?.billing !== 'metered') return null
  if (READERS[endpoint.usage]?.usageOnRequest !== true) return null
  const ask = askForUsage(facts.scan)
  return ask.kind === 'edit' ? ask.splices : null
}

/**
 * The body in the form it is sent: bytes go with their length, a stream goes chunked unless a length is given.
 * A body that the client sent chunked is sent chunked.
 */
function bodyForUpstream(
  exchange: Exchange,
  body: RequestBody,
  times: BodyTimes,
  look: (chunk: Borrowed) => void,
): UpstreamBody {
  switch (body.kind) {
    case 'none':
      return null
    case 'held':
      return (body.lengthBytes === null ? null : body.held.pieces()) ?? body.held.stream()
    case 'flowing':
      return bridge(exchange, times, look)
  }
}

/** The client stopped sending a body that flows through, or sends it too slowly; the message is for the client. */
export class BodyIdle extends Error {
  readonly code = 'TOLLGATE_BODY_IDLE'
}

/** The request as a stream of its own, which may be destroyed: the request must survive to be answered. */
function bridge({ req, res }: Exchange, times: BodyTimes, look: (chunk: Borrowed) => void): Readable {
  const pace = new BodyPace(times, (message) => out.destroy(new BodyIdle(message)))
  pace.watchSilence()
  const out = new Readable({
    highWaterMark: 64 * 1024,
    read() {
      pace.resumed()
      req.resume()
    },
    destroy(error, done) {
      pace.stop()
      res.whenClosed.remove(onLeft)
      discardRest(req)
      done(error)
    },
  })
  // Without a listener an error would end the process; where upstream cannot be reached, there is no other listener.
  out.on('error', () => {})
  function onData(chunk: Borrowed): boolean {
    if (!pace.arrived(chunk.length)) return true
    look(chunk)
    if (out.push(copyIfBorrowed(chunk))) return true
    pace.paused()
    return false
  }
  function onEnd(): void {
    pace.stop()
    out.push(null)
  }
  // The client left in mid-upload: upstream must not see a body that looks complete.
  function onLeft(): void {
    if (!req.complete) out.destroy(new Error('the client left'))
  }
  res.whenClosed.add(onLeft)
  req.receive({ data: onData, end: onEnd })
  return out
}

/** Changes a reply on its way to the client. */
export interface ReplyEditor {
  /** A promise means: the next chunk waits for it. `broken` ends the reply as a cut one. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> | null
  end(take: TakeBytes): Promise<'whole' | 'broken'>
  /** Upstream's reply was cut: bytes that the editor keeps are sent as far as they may leave. */
  breakOff(take: TakeBytes): Promise<void>
  destroy(): void
}

/**
 * Cuts the usage that we asked for out of a stream of events; null for every other reply, which passes as it is.
 */
export function createUsageRemover(status: number, headers: RawHeaders): ReplyEditor | null {
  const type = firstValue(headers, 'content-type') ?? ''
  if (status < 200 || status > 299 || !/^\s*text\/event-stream\b/i.test(type)) return null
  return editReply(headers, new UsageCutter())
}

/** Edits a reply in the content coding in which it comes; null for a coding that is not known, or for several. */
function editReply(headers: RawHeaders, editor: ByteEditor): ReplyEditor | null {
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'unknown' || hasConflictingValues(headers, 'content-encoding')) return null
  return coding === 'identity' ? plainEditor(editor) : new RecodedStream(coding.coding, editor)
}

/** The origin at which the client finds this gateway; null where addresses in replies stay as they are. */
export function originFor(
  exchange: Exchange,
  isSecure: ((exchange: Exchange) => boolean) | null,
): string | null {
  const host = isSecure === null ? undefined : firstValue(exchange.headers, 'host')
  return host === undefined ? null : `${isSecure?.(exchange) ? 'https' : 'http'}://${host}`
}

/** Replies that show Message batches: one, or a list of them. */
const SHOWS_BATCHES = /^\/v1\/messages\/batches(?:\/\{[^/]+\}(?:\/cancel)?)?$/

/**
 * Points the `results_url` of Message batches at this gateway, where there is an `origin`. Upstream gives an absolute address,
 * and SDKs fetch that address as it is: past the gateway, with a key that is ours. Null for every other reply.
 */
export function createUrlRewriter(
  { template, origin }: { readonly template: string; readonly origin: string | null },
  status: number,
  headers: RawHeaders,
): ReplyEditor | null {
  if (origin === null || status !== 200 || !SHOWS_BATCHES.test(template)) return null
  if (!isJsonType(firstValue(headers, 'content-type') ?? '')) return null
  return editReply(headers, new ResultsUrls(origin))
}

/** Some servers write a slash as `\/`. */
const RESULTS_URL =
  /("results_url"\s*:\s*")(?:[^"\\]|\\\/)*?((?:\\?\/)v1\\?\/messages\\?\/batches\\?\/[\w-]+\\?\/results")/g

/** Keeps a reply until it is whole. A reply that is too long passes as it is. */
class ResultsUrls implements ByteEditor {
  readonly #origin: string
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(origin: string) {
    this.#origin = origin
  }

  write(chunk: Buffer): Buffer | null {
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    return this.#bytes > limits.batchListBytesMax ? this.#take() : null
  }

  end(): Buffer {
    if (this.#bytes > limits.batchListBytesMax) return this.#take()
    // Latin-1 keeps every byte as it is, whatever stands around the addresses.
    const text = this.#take().toString('latin1')
    // A host may have a `$`, which is special in a replacement that is a string.
    const replace = (_all: string, before: string, path: string) => `${before}${this.#origin}${path}`
    return Buffer.from(text.replace(RESULTS_URL, replace), 'latin1')
  }

  #take(): Buffer {
    return Buffer.concat(this.#chunks.splice(0))
  }
}

function plainEditor(editor: ByteEditor): ReplyEditor {
  return {
    write(chunk, take) {
      const bytes = editor.write(chunk)
      const wait = bytes === null ? null : take(bytes)
      return wait === null ? null : wait.then(() => 'open' as const)
    },
    async end(take) {
      const rest = editor.end()
      if (rest !== null) await take(rest)
      return 'whole'
    },
    async breakOff(take) {
      const rest = editor.end()
      if (rest !== null) await take(rest)
    },
    destroy() {},
  }
}
