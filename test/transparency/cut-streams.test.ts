import assert from 'node:assert/strict'
import type { Buffer } from 'node:buffer'
import { assertSameBytes } from '../support/compare.ts'
import { startPair } from '../support/pair.ts'
import { connect, type RawReply } from '../support/raw-client.ts'
import { cutsOf } from '../support/scale.ts'
import { emptyReply } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import type { Step } from '../support/upstream-script.ts'
import { chunked, message } from '../support/wire-bytes.ts'
import { headerValues, MessageReader } from '../support/wire-message.ts'
import { eventsOf, type GoldenStream, goldenStreams } from './golden-streams.ts'

/** 32 concurrent calls share wake-ups and commits, which takes a fifth of the CPU time of eight. */
const workers = 32
const pair = await startPair()
closeAfter(pair)

let calls = 0

type Cut = { reply: RawReply; prefix: Buffer; hasHead: boolean; at: number }

/** The part of the body that a reader of only these bytes would have. */
function prefixOf(wire: Buffer): { prefix: Buffer; hasHead: boolean } {
  const reader = new MessageReader({ kind: 'response', method: 'POST' })
  reader.push(wire)
  return { prefix: reader.message().body, hasHead: reader.hasHead }
}

/** Upstream sends up to each cut and ends the connection. Resolves with the number of calls. */
async function cutEverywhere(
  stream: GoldenStream,
  wire: Buffer,
  how: 'fin' | 'reset',
  check: (cut: Cut) => void,
): Promise<number> {
  const pending = new Map<string, Step[]>()
  pair.upstream.answer((request) => {
    // The gateway polls a stored response that was cut; that request is not a call.
    if (request.method === 'GET') return [{ send: emptyReply }]
    calls += 1
    return pending.get(headerValues(request.headerLines, 'x-case')[0] ?? '') ?? []
  })
  const cuts = cutsOf(wire)
  const left = cuts.values()
  const work = Array.from({ length: workers }, async () => {
    for (const at of left) {
      const client = await connect(pair.gateway)
      const { prefix, hasHead } = prefixOf(wire.subarray(0, at))
      const send = { send: wire.subarray(0, at) }
      // A reset may overtake bytes that the gateway has not read, so upstream waits until they have arrived.
      const seen = hasHead ? { pause: client.reached(prefix.length) } : { pause: 0 }
      pending.set(String(at), how === 'fin' ? [send, { close: true }] : [send, seen, { reset: true }])
      const parts = { target: stream.endpoint, lines: [`x-case: ${at}`], body: stream.body }
      const reply = await client.request(pair.request(stream.surface, parts))
      check({ reply, prefix, hasHead, at })
      client.leave()
      pending.delete(String(at))
    }
  })
  await Promise.all(work)
  return cuts.length
}

function assertBroken({ reply, prefix, hasHead, at }: Cut): void {
  if (!hasHead) {
    assert.equal(reply.status, 502, `cut at byte ${at} of the head`)
    assert.equal(reply.ended, 'complete')
    return
  }
  assert.equal(reply.statusLine, 'HTTP/1.1 200 OK', `cut at byte ${at}`)
  assert.equal(reply.ended, 'cut', `cut at byte ${at}: the client must not see a clean end`)
  assertSameBytes(reply.body, prefix, `cut at byte ${at}`)
}

for (const stream of goldenStreams) {
  for (const how of ['fin', 'reset'] as const) {
    test(`${stream.name} cut anywhere by a ${how} of upstream reaches the client up to there, and broken`, async () => {
      const lines = ['Content-Type: text/event-stream']
      const wire = chunked('HTTP/1.1 200 OK', lines, eventsOf(stream.bytes))
      const before = calls
      const cuts = await cutEverywhere(stream, wire, how, assertBroken)
      assert.equal(calls - before, cuts, 'no call was made twice')
    })
  }
}

const [, chat] = goldenStreams
assert.ok(chat)
const short = { ...chat, bytes: chat.bytes.subarray(0, 200) }
const type = 'Content-Type: text/event-stream'

const framings = {
  'a sized stream': message('HTTP/1.1 200 OK', [type, `Content-Length: ${short.bytes.length}`], short.bytes),
  'a sized stream on a connection that upstream will close': message(
    'HTTP/1.1 200 OK',
    [type, 'Connection: close', `Content-Length: ${short.bytes.length}`],
    short.bytes,
  ),
  'a chunked stream on a connection that upstream will close': chunked(
    'HTTP/1.1 200 OK',
    [type, 'Connection: close'],
    eventsOf(short.bytes),
  ),
  'a chunked HTTP/1.1 stream with trailers': chunked('HTTP/1.1 200 OK', [type], eventsOf(short.bytes), [
    'X-Sum: 1',
  ]),
}

for (const [name, wire] of Object.entries(framings)) {
  for (const how of ['fin', 'reset'] as const) {
    test(`${name} cut anywhere by a ${how} is broken for the client too`, async () => {
      await cutEverywhere(short, wire, how, assertBroken)
    })
  }
}

test('a body that ends with its connection is broken by a reset', async () => {
  await cutEverywhere(short, message('HTTP/1.1 200 OK', [type], short.bytes), 'reset', assertBroken)
})

test('a body that ends with its connection is complete after a close', async () => {
  await cutEverywhere(short, message('HTTP/1.1 200 OK', [type], short.bytes), 'fin', (cut) => {
    if (!cut.hasHead) return assertBroken(cut)
    assert.equal(cut.reply.ended, 'complete', 'the end of the body is the end of the connection')
    assertSameBytes(cut.reply.body, cut.prefix, `ended at byte ${cut.at}`)
  })
})

test('an HTTP/1.0 client, for which only a close ends a body, gets a cut stream as a reset', async () => {
  for (const end of [{ close: true }, { reset: true }] as const) {
    const client = await connect(pair.gateway)
    const wire = chunked('HTTP/1.1 200 OK', [type], eventsOf(short.bytes)).subarray(0, -5)
    const { prefix } = prefixOf(wire)
    pair.upstream.queue([{ send: wire }, { pause: client.reached(prefix.length) }, end])
    const parts = { version: 'HTTP/1.0', target: short.endpoint, body: short.body }
    const reply = await client.request(pair.request(short.surface, parts))
    assert.equal(reply.framing, 'eof')
    assert.equal(reply.ended, 'cut')
    assertSameBytes(reply.body, prefix, 'what came before the cut')
    client.leave()
  }
})
