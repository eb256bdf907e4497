import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import zlib from 'node:zlib'
import type { Behaviours } from './behaviours.ts'
import { type PaceMode, tokensMs, wait } from './pace.ts'
import type { Frame, Reply } from './reply.ts'

export interface Delivery {
  readonly res: ServerResponse
  readonly behaviours: Behaviours
  readonly mode: PaceMode
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
}

/** `cut` asks the caller to destroy the socket; `left` means that the client has left. */
export type Outcome = 'complete' | 'cut' | 'left'

/** At an instant pace this many events share one turn of the event loop before other requests get a turn. */
const eventsPerTurn = 32
/** How long a cut waits for the client to read what was written before it. */
const flushMsMax = 1_000

const encoders: ReadonlyMap<string, (bytes: Buffer) => Buffer> = new Map<string, (bytes: Buffer) => Buffer>([
  ['gzip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['br', zlib.brotliCompressSync],
  ['zstd', zlib.zstdCompressSync],
])

export async function writeReply(delivery: Delivery, reply: Reply): Promise<Outcome> {
  const { res, behaviours, mode, signal } = delivery
  const { cut, dripMs } = behaviours
  const pace = mode === 'realistic' ? reply.pace : null
  if (pace !== null) await wait(pace.firstByteMs + tokensMs(pace, reply.tokens), signal)
  if (signal.aborted) return 'left'
  const { frames, headers } = encoded(reply, behaviours.encode, res.req.headers['accept-encoding'])
  res.writeHead(reply.status, headers.flat())
  if (res.req.method === 'HEAD') {
    res.end()
    return 'complete'
  }
  let flushed: Promise<void> = Promise.resolve()
  let bytesLeft = cut?.kind === 'byte' ? cut.count : Number.POSITIVE_INFINITY
  let index = 0
  for (const frame of inPieces(failingAt({ ...reply, frames }, behaviours.errorEvent), behaviours.chunks)) {
    if (bytesLeft === 0 || (cut?.kind === 'event' && cut.count === index)) break
    // A body without events is cut in half.
    if (cut?.kind === 'event' && !reply.isStream) bytesLeft = frame.bytes.length >> 1
    if (pace !== null) await wait(tokensMs(pace, frame.tokens), signal)
    if (index > 0 && dripMs !== undefined && dripMs > 0) await wait(dripMs, signal)
    else if (dripMs !== undefined || index % eventsPerTurn === eventsPerTurn - 1) await nextTurn()
    if (signal.aborted) return 'left'
    const bytes = frame.bytes.subarray(0, Math.min(frame.bytes.length, bytesLeft))
    bytesLeft -= bytes.length
    const written = Promise.withResolvers<void>()
    flushed = written.promise
    // A client that reads slowly stops the generation here; a client that leaves aborts the signal.
    if (!res.write(bytes, () => written.resolve())) {
      await once(res, 'drain', { signal }).catch(() => undefined)
    }
    index += 1
  }
  if (signal.aborted) return 'left'
  if (cut === undefined) {
    res.end()
    return 'complete'
  }
  // A reply that is shorter than the cut breaks too. Node holds the head back until the first byte of the body.
  res.flushHeaders()
  await nextTurn()
  await Promise.race([flushed, wait(flushMsMax, signal)])
  return 'cut'
}

function encoded(
  { frames, headers }: Reply,
  coding = '',
  accepted: string | string[] = coding,
): Pick<Reply, 'frames' | 'headers'> {
  const encode = encoders.get(coding)
  if (encode === undefined || !accepted.includes(coding)) return { frames, headers }
  const bytes = encode(Buffer.concat([...frames].map((frame) => frame.bytes)))
  const others = headers.filter(([name]) => name !== 'content-length')
  return {
    frames: [{ bytes, tokens: 0, isDelta: false }],
    headers: [...others, ['content-encoding', coding]],
  }
}

function* failingAt(reply: Reply, errorEvent: number | undefined): Generator<Frame> {
  let sent = 0
  let deltas = 0
  for (const frame of reply.frames) {
    if (errorEvent !== undefined && frame.isDelta && deltas >= errorEvent) return yield reply.errorFrame(sent)
    yield frame
    sent += 1
    if (frame.isDelta) deltas += 1
  }
}

/** Pieces of `size` bytes that respect no boundary of the events. */
function* inPieces(frames: Iterable<Frame>, size: number | undefined): Generator<Frame> {
  if (size === undefined) return yield* frames
  let rest = Buffer.alloc(0)
  for (const frame of frames) {
    rest = Buffer.concat([rest, frame.bytes])
    for (; rest.length >= size; rest = rest.subarray(size)) yield { ...frame, bytes: rest.subarray(0, size) }
  }
  if (rest.length > 0) yield { bytes: rest, tokens: 0, isDelta: false }
}
