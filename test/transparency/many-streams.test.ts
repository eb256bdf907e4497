import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertSameBytes } from '../support/compare.ts'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { chunk, lastChunk, message } from '../support/wire-bytes.ts'
import { eventsOf, goldenStreams } from './golden-streams.ts'

const streamCount = 1_000
const pair = await startPair()
after(() => pair.close())

test('a thousand streams at once are all under way together and all finish complete', async () => {
  const allArrived = Promise.withResolvers<void>()
  const first = pair.upstream.requestCount
  pair.upstream.answer((request) => {
    if (pair.upstream.requestCount - first === streamCount) allArrived.resolve()
    const stream = goldenStreams.find((one) => one.endpoint === request.target)
    assert.ok(stream)
    const head = message('HTTP/1.1 200 OK', ['Content-Type: text/event-stream', 'Transfer-Encoding: chunked'])
    const events = eventsOf(stream.bytes).map((event) => ({ send: chunk(event) }))
    return [{ send: head }, { pause: allArrived.promise }, ...events, { send: lastChunk() }]
  })
  const streams = Array.from({ length: streamCount }, async (_, at) => {
    const stream = goldenStreams[at % goldenStreams.length] ?? assert.fail()
    const client = await connect(pair.gateway)
    const request = pair.request(stream.surface, { target: stream.endpoint, body: stream.body })
    const reply = await client.request(request, { deadlineMs: 120_000 })
    assert.equal(reply.ended, 'complete')
    assertSameBytes(reply.body, stream.bytes, `stream ${at}`)
    client.leave()
  })
  await Promise.all(streams)
})
