import { Readable } from 'node:stream'
import { discardRest, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import type { UpstreamBody } from '../http/send-request.ts'
import { codingOf } from '../metering/decode-copy.ts'
import type { RequestFacts } from '../metering/request-reader.ts'
import { applySplice, askForUsage, type Splice } from '../providers/chat-usage.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { isJsonType, READERS } from '../providers/surfaces.ts'
import type { RequestBody } from './read.ts'

const BATCH_LIST_BYTES_MAX = 4 * 1024 ** 2

export interface PreparedBody {
  readonly content: UpstreamBody
  readonly lengthBytes: number | null
  /** The gateway asked for usage on the client's behalf, so the added usage is removed from the reply. */
  readonly usageAdded: boolean
}

/**
 * The one permitted change of a body: a chat stream that would not report its usage is asked to. Every other body, and
 * every other byte of this one, goes as it came. A compressed body is never changed.
 */
export function prepareBody(
  exchange: Exchange,
  body: RequestBody,
  facts: RequestFacts,
  endpoint: Endpoint | null,
  settings: {
    readonly injectUsage: boolean
    readonly times: BodyTimes
    look(chunk: Buffer): void
  },
): PreparedBody {
  const splice = settings.injectUsage ? usageSplice(exchange, facts, endpoint) : null
  const pieces = splice === null || body.kind !== 'held' ? null : body.held.pieces()
  if (splice === null || body.kind !== 'held' || pieces === null) {
    const lengthBytes = body.kind === 'none' ? null : body.lengthBytes
    return {
      content: bodyForUpstream(exchange, body, settings.times, settings.look),
      lengthBytes,
      usageAdded: false,
    }
  }
  const changed = applySplice(Buffer.isBuffer(pieces) ? [pieces] : pieces, splice)
  if (body.lengthBytes === null)
    return { content: Readable.from(changed), lengthBytes: null, usageAdded: true }
  const lengthBytes = body.lengthBytes + splice.insert.length - splice.deleteBytes
  return { content: changed, lengthBytes, usageAdded: true }
}

function usageSplice({ headers }: Exchange, facts: RequestFacts, endpoint: Endpoint | null): Splice | null {
  if (facts.kind !== 'json' || endpoint?.billing !== 'metered') return null
  if (READERS[endpoint.usage]?.usageOnRequest !== true) return null
  if (codingOf(firstValue(headers, 'content-encoding')) !== 'identity') return null
  const ask = askForUsage(facts)
  return ask.kind === 'edit' ? ask.splice : null
}

function bodyForUpstream(
  exchange: Exchange,
  body: RequestBody,
  times: BodyTimes,
  look: (chunk: Buffer) => void,
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
function bridge({ req, res }: Exchange, times: BodyTimes, look: (chunk: Buffer) => void): Readable {
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
  function onData(chunk: Buffer): boolean {
    if (!pace.arrived(chunk.length)) return true
    look(chunk)
    if (out.push(Buffer.from(chunk))) return true
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

export function originFor(
  exchange: Exchange,
  isSecure: ((exchange: Exchange) => boolean) | null,
): string | null {
  const host = isSecure === null ? undefined : firstValue(exchange.headers, 'host')
  return host === undefined ? null : `${isSecure?.(exchange) ? 'https' : 'http'}://${host}`
}

const SHOWS_BATCHES = /^\/v1\/messages\/batches(?:\/\{[^/]+\}(?:\/cancel)?)?$/

export function showsBatches(template: string): boolean {
  return SHOWS_BATCHES.test(template)
}

/**
 * Points the `results_url` of Message batches at this gateway, where there is an `origin`. Upstream gives an absolute address,
 * and SDKs fetch that address as it is: past the gateway, with a key that is ours. Null for every other reply.
 */
export function createUrlRewriter(
  { template, origin }: { readonly template: string; readonly origin: string | null },
  status: number,
  headers: RawHeaders,
): ResultsUrls | null {
  if (origin === null || status !== 200 || !showsBatches(template)) return null
  if (!isJsonType(firstValue(headers, 'content-type') ?? '')) return null
  return codingOf(firstValue(headers, 'content-encoding')) === 'identity' ? new ResultsUrls(origin) : null
}

/** Some servers write a slash as `\/`. */
const RESULTS_URL =
  /("results_url"\s*:\s*")(?:[^"\\]|\\\/)*?((?:\\?\/)v1\\?\/messages\\?\/batches\\?\/[\w-]+\\?\/results")/g

export class ResultsUrls {
  readonly #origin: string
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(origin: string) {
    this.#origin = origin
  }

  write(chunk: Buffer): Buffer | null {
    this.#bytes += chunk.length
    this.#chunks.push(Buffer.from(chunk))
    return this.#bytes > BATCH_LIST_BYTES_MAX ? this.#take() : null
  }

  end(): Buffer {
    if (this.#bytes > BATCH_LIST_BYTES_MAX) return this.#take()
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
