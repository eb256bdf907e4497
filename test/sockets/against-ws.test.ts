import assert from 'node:assert/strict'
import fc from 'fast-check'
import { scaled } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { type RandomFrames, randomFrames } from './random-frames.ts'
import { type Event, type ReadFrames, readFrames } from './wire-frames.ts'
import { receiveWithWs, type WsEvent } from './ws-receiver.ts'

/** Joins the parts of each frame, so that all chunkings give the same result. */
function framesOf({ parts }: ReadFrames): string {
  let frames = ''
  let wire = ''
  let payload = ''
  for (const part of parts) {
    wire += part.wire.toString('latin1')
    payload += part.payload.toString('latin1')
    if (!part.endsFrame && part !== parts.at(-1)) continue
    const { kind, opcode, endsFrame, endsMessage } = part
    frames += `${kind} ${opcode} ${endsFrame} ${endsMessage} ${wire.length} ${wire} ${payload}\n`
    wire = ''
    payload = ''
  }
  return frames
}

function shown(event: Event | WsEvent | undefined): string {
  if (event === undefined) return 'nothing'
  return 'payload' in event ? `${event.kind} ${event.opcode} ${event.payload.toString('latin1')}` : event.kind
}

function compare(read: ReadFrames, expected: readonly WsEvent[]): void {
  for (const [i, event] of expected.entries()) {
    if (event.kind === 'error') {
      compareEnd(read, i, event)
      return
    }
    assert.equal(shown(read.events[i]), shown(event))
  }
  assert.equal(read.events.length, expected.length)
  assert.equal(read.violation, null)
}

function compareEnd(read: ReadFrames, at: number, error: WsEvent & { kind: 'error' }): void {
  const rest = read.events.slice(at)
  const next = rest.find((event) => event.kind !== 'control')
  if (error.code === 'WS_ERR_INVALID_UTF8' && next !== undefined) {
    assert.deepEqual(next, { kind: 'unreadable', why: 'not_utf8' })
    return
  }
  assert.deepEqual(rest, [])
  const highBit = error.closeCode === 1009 && read.violation?.closeCode === 1002
  assert.ok(
    highBit || read.violation?.closeCode === error.closeCode,
    `${error.code} ${read.violation?.reason}`,
  )
}

async function check({ from, bytes, chunks }: RandomFrames): Promise<void> {
  const before = Buffer.from(bytes)
  const whole = readFrames([bytes], from)
  const cut = readFrames(chunks, from)
  assert.ok(bytes.equals(before))
  assert.equal(framesOf(cut), framesOf(whole))
  assert.equal(cut.violation?.reason, whole.violation?.reason)
  assert.equal(cut.events.map(shown).join(), whole.events.map(shown).join())
  const passed = Buffer.concat(cut.parts.map((part) => part.wire))
  assert.ok(bytes.subarray(0, passed.length).equals(passed))
  compare(whole, await receiveWithWs(bytes, from))
}

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 })

test('mutated frame sequences are parsed as ws parses them, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(seeds, (seed) => check(randomFrames(seed))),
    { numRuns: scaled(3_000, 100_000) },
  )
})
