import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Deflate } from '../../src/sockets/inflater.ts'
import { type RandomFrames, randomFrames } from './random-frames.ts'
import { type Event, type ReadFrames, readFrames } from './wire-frames.ts'
import { receiveWithWs, type WsEvent } from './ws-receiver.ts'

/** Joins the parts of each frame, so that the result is the same for all chunks. */
function framesOf({ parts }: ReadFrames): string {
  let frames = ''
  let wire = ''
  let payload = ''
  for (const part of parts) {
    wire += part.wire.toString('latin1')
    payload += part.payload.toString('latin1')
    if (!part.endsFrame && part !== parts.at(-1)) continue
    const { kind, opcode, compressed, endsFrame, endsMessage } = part
    frames += `${kind} ${opcode} ${compressed} ${endsFrame} ${endsMessage} ${wire.length} ${wire} ${payload}\n`
    wire = ''
    payload = ''
  }
  return frames
}

function shown(event: Event | WsEvent | undefined): string {
  if (event === undefined) return 'nothing'
  return 'payload' in event ? `${event.kind} ${event.opcode} ${event.payload.toString('latin1')}` : event.kind
}

/** The error codes of `ws` for messages that we call unreadable. */
const UNREADABLE: Readonly<Record<string, string>> = {
  WS_ERR_INVALID_UTF8: 'not_utf8',
  Z_DATA_ERROR: 'not_inflatable',
  Z_BUF_ERROR: 'not_inflatable',
  Z_NEED_DICT: 'not_inflatable',
}

/** `ws` leaves out bytes behind the end of a deflate stream in its frame, or takes them for another stream. */
function isReadOn(event: WsEvent): boolean {
  return event.kind !== 'control' && event.streamEnded
}

function compare(read: ReadFrames, expected: readonly WsEvent[]): void {
  for (const [i, event] of expected.entries()) {
    const own = read.events[i]
    if (event.kind === 'error') {
      if (!event.isAstray) compareEnd(read, i, event)
      return
    }
    if (isReadOn(event) && own?.kind === 'unreadable' && own.why === 'not_inflatable') return
    assert.equal(shown(own), shown(event))
    if (event.kind === 'message' && event.isAstray) return
  }
  assert.equal(read.events.length, expected.length)
  assert.equal(read.violation, null)
}

function compareEnd(read: ReadFrames, at: number, error: WsEvent & { kind: 'error' }): void {
  const rest = read.events.slice(at)
  const next = rest.find((event) => event.kind !== 'control')
  if (isReadOn(error) && next?.kind === 'unreadable') return
  const why = UNREADABLE[error.code]
  if (why !== undefined && next !== undefined) {
    assert.deepEqual(next, { kind: 'unreadable', why })
    return
  }
  // `ws` inflates frame by frame, so it may find the error before the message ends.
  if (why === 'not_inflatable') return
  assert.deepEqual(rest, [])
  const highBit = error.closeCode === 1009 && read.violation?.closeCode === 1002
  assert.ok(
    highBit || read.violation?.closeCode === error.closeCode,
    `${error.code} ${read.violation?.reason}`,
  )
}

async function check({ from, inflate, bytes, chunks }: RandomFrames): Promise<void> {
  const before = Buffer.from(bytes)
  const whole = await readFrames([bytes], { from, inflate })
  const cut = await readFrames(chunks, { from, inflate })
  assert.ok(bytes.equals(before))
  assert.equal(framesOf(cut), framesOf(whole))
  assert.equal(cut.violation?.reason, whole.violation?.reason)
  assert.equal(cut.events.map(shown).join(), whole.events.map(shown).join())
  const passed = Buffer.concat(cut.parts.map((part) => part.wire))
  assert.ok(bytes.subarray(0, passed.length).equals(passed))
  compare(whole, await receiveWithWs(bytes, from, inflate))
}

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 })

test('90,000 mutated sequences of frames are read as ws reads them, however they are chunked', async () => {
  await fc.assert(
    fc.asyncProperty(seeds, (seed) => check(randomFrames(seed, null))),
    { numRuns: 90_000 },
  )
})

test('10,000 that are compressed are read as ws reads them, or not at all where a deflate stream ends within', async () => {
  const inflateAll: Deflate = { contextTakeover: true, windowBits: 15 }
  const inflates = fc.constantFrom<Deflate>(
    inflateAll,
    { contextTakeover: false, windowBits: 15 },
    { contextTakeover: true, windowBits: 9 },
  )
  await fc.assert(
    fc.asyncProperty(seeds, inflates, (seed, inflate) => check(randomFrames(seed, inflate))),
    { numRuns: 10_000, examples: [2236357617, 1418377224].map((seed) => [seed, inflateAll]) },
  )
})
