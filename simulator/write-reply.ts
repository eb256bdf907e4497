import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Behaviours, Cut } from './behaviours.ts'
import { acceptsCoding, createEncoder } from './encoder.ts'
import { type PaceMode, tokensMs, wait } from './pace.ts'
import type { Header, Reply } from './reply.ts'
import { ReplyWriter } from './reply-writer.ts'
import { createSlicer, wholeWrites } from './slicer.ts'
import type { Frame } from './sse.ts'

export interface Delivery {
  readonly res: ServerResponse
  readonly behaviours: Behaviours
  readonly mode: PaceMode
  readonly acceptEncoding: string | undefined
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
}

/** `cut` asks the caller to destroy the socket; `left` means that the client has left. */
export type Outcome = 'complete' | 'cut' | 'left'

/** In instant mode this many events may share one turn of the event loop before other requests get a turn. */
const eventsPerTurn = 32
/** `cut=mid-event` breaks off half way through this event, counted from 0. */
const midEventIndex = 2

export async function writeReply(delivery: Delivery, reply: Reply): Promise<Outcome> {
  const { res, behaviours, mode, signal } = delivery
  const pace = mode === 'realistic' ? reply.pace : null
  if (pace !== null) {
    const writingMs = reply.kind === 'body' ? tokensMs(pace, reply.tokens) : 0
    await wait(pace.firstByteMs + writingMs, signal)
  }
  if (signal.aborted) return 'left'

  const { cut, dripMs, chunks, encode } = behaviours
  const coding = encode !== undefined && acceptsCoding(delivery.acceptEncoding, encode) ? encode : undefined
  const headers: Header[] = [...reply.headers]
  if (coding !== undefined) headers.push(['content-encoding', coding])
  if (reply.kind === 'body' && coding === undefined && behaviours.framing !== 'chunked') {
    headers.push(['content-length', String(reply.body.length)])
  }
  res.writeHead(reply.status, headers.flat())
  if (res.req.method === 'HEAD') {
    res.end()
    return 'complete'
  }

  const encoder = coding === undefined ? undefined : createEncoder(coding)
  const slicer = chunks === undefined ? wholeWrites : createSlicer(chunks)
  const writer = new ReplyWriter(res, signal, cut?.kind === 'byte' ? cut.count : undefined)
  const pauseMs = reply.kind === 'body' ? dripMs : undefined
  const end = async (): Promise<Outcome> => {
    if (signal.aborted) return 'left'
    await writer.flush()
    return 'cut'
  }

  let index = 0
  for (const part of partsOf(reply, behaviours.errorEvent)) {
    if (cut !== undefined && isBefore(cut, index)) return await end()
    if (pace !== null) await wait(tokensMs(pace, part.tokens), signal)
    if (index > 0 && dripMs !== undefined && dripMs > 0) await wait(dripMs, signal)
    else if (dripMs !== undefined || index % eventsPerTurn === eventsPerTurn - 1) await nextTurn()

    const isHalved = cut !== undefined && isWithin(cut, index, reply.kind)
    const plain = isHalved ? part.bytes.subarray(0, part.bytes.length >> 1) : part.bytes
    const bytes = encoder === undefined ? plain : await encoder.push(plain)
    if (!(await writer.write(slicer.push(bytes), pauseMs))) return await end()
    index += 1
    if (isHalved || (cut?.kind === 'event' && cut.count === index)) {
      await writer.write(slicer.finish(), pauseMs)
      return await end()
    }
  }
  const tail = encoder === undefined ? [] : slicer.push(await encoder.finish())
  if (!(await writer.write([...tail, ...slicer.finish()], pauseMs))) return await end()
  // A reply that is shorter than the place of the cut still breaks: a cut was asked for, not a clean end.
  if (cut !== undefined) return await end()
  res.end()
  return 'complete'
}

interface Part {
  readonly bytes: Buffer
  readonly tokens: number
}

function* partsOf(reply: Reply, errorEvent: number | undefined): Generator<Part> {
  if (reply.kind === 'body') {
    yield { bytes: reply.body, tokens: 0 }
    return
  }
  let sent = 0
  let deltas = 0
  for (const frame of reply.frames) {
    if (errorEvent !== undefined && frame.isDelta && deltas >= errorEvent) {
      yield { bytes: bytesOf(reply.errorFrame(sent)), tokens: 0 }
      return
    }
    yield { bytes: bytesOf(frame), tokens: frame.tokens }
    sent += 1
    if (frame.isDelta) deltas += 1
  }
}

function bytesOf({ text }: Frame): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text
}

function isBefore(cut: Cut, index: number): boolean {
  return cut.kind !== 'mid-event' && cut.count === 0 && index === 0
}

/** A body without events is cut in half by either kind of event cut. */
function isWithin(cut: Cut, index: number, kind: Reply['kind']): boolean {
  if (kind === 'body') return cut.kind !== 'byte'
  return cut.kind === 'mid-event' && index === midEventIndex
}
