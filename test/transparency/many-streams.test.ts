import assert from 'node:assert/strict'
import { assertSameBytes } from '../support/compare.ts'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunk, lastChunk, message } from '../support/wire-bytes.ts'
import { eventsOf, goldenStreams } from './golden-streams.ts'

const streamCount = 1_000
/** How many streams begin at a time: the store refuses calls that wait for two seconds on a busy machine. */
const waveSize = 100
const pair = await startPair()
closeAfter(pair)

test('a thousand concurrent streams all run at once and all complete', async () => {
  const waves = Array.from({ length: streamCount / waveSize }, () => Promise.withResolvers<void>())
  const allArrived = waves.at(-1) ?? assert.fail()
  const first = pair.upstream.requestCount
  pair.upstream.answer((request) => {
    const arrived = pair.upstream.requestCount - first
    if (arrived % waveSize === 0) waves[arrived / waveSize - 1]?.resolve()
    const stream = goldenStreams.find((one) => one.endpoint === request.target)
    assert.ok(stream)
    const head = message('HTTP/1.1 200 OK', ['Content-Type: text/event-stream', 'Transfer-Encoding: chunked'])
    const events = eventsOf(stream.bytes).map((event) => ({ send: chunk(event) }))
    return [{ send: head }, { pause: allArrived.promise }, ...events, { send: lastChunk() }]
  })
  const begin = async (at: number) => {
    const stream = goldenStreams[at % goldenStreams.length] ?? assert.fail()
    const client = await connect(pair.gateway)
    const request = pair.request(stream.surface, { target: stream.endpoint, body: stream.body })
    const reply = await client.request(request, { deadlineMs: 120_000 })
    assert.equal(reply.ended, 'complete')
    assertSameBytes(reply.body, stream.bytes, `stream ${at}`)
    client.leave()
  }
  const streams: Promise<void>[] = []
  for (const wave of waves) {
    for (let i = 0; i < waveSize; i++) streams.push(begin(streams.length))
    await Promise.race([wave.promise, Promise.all(streams)])
  }
  await Promise.all(streams)
})
