import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { assertSameBytes } from '../support/compare.ts'
import { startPair } from '../support/pair.ts'
import type { RawConnection } from '../support/raw-client.ts'
import { connect } from '../support/raw-client.ts'
import { cutsOf } from '../support/scale.ts'
import { closeAfter, test } from '../support/suite.ts'
import type { Script } from '../support/upstream-script.ts'
import { chunk, chunked, lastChunk, message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { eventsOf, type GoldenStream, goldenStreams, withCrlf, withHugeEvent } from './golden-streams.ts'

/** 32 concurrent calls share the store's wake-ups and commits. */
const workers = 32
const replyLines = ['Content-Type: text/event-stream; charset=utf-8', 'Cache-Control: no-cache']
const pair = await startPair()
closeAfter(pair)

/** Runs every case over a few keep-alive connections; a header carries the case number. */
async function runCases(
  stream: GoldenStream,
  cases: number,
  script: (item: number, client: RawConnection) => Script,
): Promise<void> {
  const clients = await Promise.all(Array.from({ length: workers }, () => connect(pair.gateway)))
  pair.upstream.answer((request) => {
    const item = Number(headerValues(request.headerLines, 'x-case')[0])
    const client = clients[item % workers]
    assert.ok(client)
    return script(item, client)
  })
  const work = clients.map(async (client, worker) => {
    for (let item = worker; item < cases; item += workers) {
      const lines = [`x-case: ${item}`, 'Content-Type: application/json']
      const parts = { target: stream.endpoint, lines, body: stream.body }
      const reply = await client.request(pair.request(stream.surface, parts))
      assert.equal(reply.statusLine, 'HTTP/1.1 200 OK', `case ${item}`)
      assert.equal(reply.ended, 'complete', `case ${item}`)
      assertSameBytes(reply.body, stream.bytes, `case ${item}`)
    }
    client.leave()
  })
  await Promise.all(work)
}

const streams = [...goldenStreams, ...goldenStreams.slice(1, 2).map(withCrlf)]

for (const stream of streams) {
  test(`${stream.name}: split in two anywhere, each part reaches the client before the next is sent`, async () => {
    const head = message('HTTP/1.1 200 OK', [...replyLines, 'Transfer-Encoding: chunked'])
    const { bytes } = stream
    const cuts = cutsOf(bytes)
    await runCases(stream, cuts.length, (item, client) => {
      const cut = cuts[item] ?? 0
      const first = cut === 0 ? head : Buffer.concat([head, chunk(bytes.subarray(0, cut))])
      const rest = Buffer.concat([chunk(bytes.subarray(cut)), lastChunk()])
      // The second half is sent after the client has the first, which a gateway that waits never forwards.
      return [{ send: first }, { pause: client.reached(cut) }, { send: rest }]
    })
  })
}

for (const stream of goldenStreams) {
  test(`${stream.name}: written event by event and split anywhere, head and framing included`, async () => {
    const wire = chunked('HTTP/1.1 200 OK', replyLines, eventsOf(stream.bytes))
    const cuts = cutsOf(wire)
    const script = (item: number) => [
      { send: wire.subarray(0, cuts[item]) },
      { send: wire.subarray(cuts[item]) },
    ]
    await runCases(stream, cuts.length, script)
  })

  test(`${stream.name}: sent one byte at a time`, async () => {
    const wire = chunked('HTTP/1.1 200 OK', replyLines, eventsOf(stream.bytes))
    const steps = Array.from(wire, (_, at) => ({ send: wire.subarray(at, at + 1) }))
    await runCases(stream, 1, () => steps)
  })

  test(`${stream.name}: in one-byte chunks`, async () => {
    const chunks = Array.from(stream.bytes, (byte) => Buffer.from([byte]))
    const wire = chunked('HTTP/1.1 200 OK', replyLines, chunks)
    await runCases(stream, 1, () => [{ send: wire }])
  })

  test(`${stream.name}: with an event of 3 MB, in pieces of odd sizes`, async () => {
    const huge = withHugeEvent(stream, 3_000_000)
    const wire = chunked('HTTP/1.1 200 OK', replyLines, eventsOf(huge.bytes))
    const sizes = [1, 7, 1_021, 65_521, 262_139]
    const script = (item: number) => {
      const size = sizes[item] ?? 1
      // Only the first and last thousand bytes go in small pieces; three million would prove no more.
      const small = size < 1_000 ? 1_000 : wire.length
      const steps = []
      for (let at = 0; at < wire.length; ) {
        const near = at < small || at >= wire.length - small
        const end = Math.min(wire.length, at + (near ? size : 100_003))
        steps.push({ send: wire.subarray(at, end) })
        at = end
      }
      return steps
    }
    await runCases(huge, sizes.length, script)
  })
}
