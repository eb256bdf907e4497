import { Readable } from 'node:stream'
import { discardRest, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { firstValue } from '../http/raw-headers.ts'
import { type Borrowed, copyIfBorrowed } from '../kernel/memory.ts'
import { codingOf } from '../metering/content-coding.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { askForUsage } from '../providers/chat-usage/ask-for-usage.ts'
import {
  applySplices,
  lengthChange,
  reencodeRequest,
  reencodeWhole,
  type Splice,
  spliceChunks,
} from '../providers/chat-usage/splice-bytes.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { READERS } from '../providers/surfaces.ts'
import type { DecodingTurns } from './decoding-turns.ts'
import type { KeyShare } from './key-shares.ts'
import type { RequestBody } from './read.ts'
import type { UpstreamBody } from './send-request.ts'

/** The body as it goes upstream. */
export interface PreparedBody {
  readonly content: UpstreamBody
  /** Announced to upstream; null for a chunked body or none. */
  readonly lengthBytes: number | null
  /** Usage was asked for in the client's place: what that adds to the reply is to be cut out again. */
  readonly usageAdded: boolean
}

/**
 * The one permitted change of a body: a chat stream that would not report its usage is asked to. Everything else, and
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
    /** To decode and encode again is work that keys take turns at. */
    readonly turns: DecodingTurns
    readonly share: KeyShare
    /** Sees what flows through. */
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

/** What is in memory is encoded in one go, and sent chunked again if it came so; the rest as upstream takes it. */
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
 * What the client sent chunked is sent chunked.
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

/** The client stopped sending a body that flows through, or sends it too slowly; the message is for it. */
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
  // Without a listener an error would end the process; where upstream cannot be reached, there is no other one.
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
