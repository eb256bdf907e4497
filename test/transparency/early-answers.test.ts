import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunk, lastChunk, noise, sized } from '../support/wire-bytes.ts'

const rounds = 20
const pair = await startPair()
after(() => pair.close())

const body = noise(8_000_000)
const tooLarge = sized(
  'HTTP/1.1 413 Payload Too Large',
  ['Connection: close', 'X-Up: 1'],
  '{"error":"too large"}',
)

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name}: a 413 that upstream sends in the middle of an upload to ${target}, closing on the rest, is delivered`, async () => {
      for (let round = 0; round < rounds; round++) {
        pair.upstream.queue({ early: [{ send: tooLarge }, { close: true }], reading: false })
        const reply = await pair.exchange(pair.request(surface, { target, body }))
        assert.equal(reply.statusLine, 'HTTP/1.1 413 Payload Too Large', `round ${round}`)
        assert.equal(reply.body.toString(), '{"error":"too large"}')
        assert.equal(reply.ended, 'complete')
      }
    })
  }

  test(`${surface.name}: an answer is delivered before the end of the upload it answers, and the connection serves on`, async () => {
    const client = await connect(pair.gateway)
    pair.upstream.queue({ early: [{ send: sized('HTTP/1.1 200 OK', [], 'early') }] })
    const lines = ['Transfer-Encoding: chunked']
    const reading = client.read({ method: 'POST' })
    await client.send([pair.head(surface, { target: surface.streamedEndpoint, lines }), chunk('first')])
    assert.equal((await reading).body.toString(), 'early')
    await client.send([chunk('second'), lastChunk()])
    const next = await client.request(pair.request(surface, { body: surface.jsonBody }))
    assert.equal(next.body.toString(), '{}')
    client.leave()
  })

  test(`${surface.name}: our own refusal in the middle of a large upload is delivered and the connection serves on`, async () => {
    for (let round = 0; round < rounds; round++) {
      const client = await connect(pair.gateway)
      const lines = ['Host: h', ...surface.lines('svc_live_nobody'), 'X-Round: 1']
      const refused = await client.request(sized(`POST ${surface.readEndpoint} HTTP/1.1`, lines, body))
      assert.equal(refused.status, 401)
      const next = await client.request(pair.request(surface, { body: surface.jsonBody }))
      assert.equal(next.status, 200, 'the bytes behind the refusal were read as the body they are')
      client.leave()
    }
  })
}
