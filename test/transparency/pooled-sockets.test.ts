import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { beforeEach, closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const rounds = 20
const pair = await startPair()
closeAfter(pair)

const own = (mark: string) =>
  sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], `{"mark":"${mark}"}`)

beforeEach(() => {
  pair.upstream.clear()
  pair.upstream.answer((request) => [{ send: own(headerValues(request.headerLines, 'x-mark')[0] ?? 'none') }])
})

for (const surface of surfaces) {
  const call = (mark: string) => pair.request(surface, { lines: [`x-mark: ${mark}`], body: surface.jsonBody })

  for (const how of ['fin', 'reset'] as const) {
    test(`${surface.name}: an idle connection ended by ${how} does not fail the next call`, async () => {
      const client = await connect(pair.gateway)
      for (let round = 0; round < rounds; round++) {
        await client.request(call('warm'))
        const ended = pair.upstream.nextConnectionEnd()
        pair.upstream.closeConnections(how)
        await ended
        const reply = await client.request(call(`${how}${round}`))
        assert.equal(reply.body.toString(), `{"mark":"${how}${round}"}`)
      }
      client.leave()
    })

    test(`${surface.name}: a call that crosses a ${how} of its idle connection is sent at most once`, async () => {
      const client = await connect(pair.gateway)
      for (let round = 0; round < rounds; round++) {
        await client.request(call('warm'))
        const count = pair.upstream.requestCount
        // Both happen in the same turn: chance decides which the gateway sees first.
        const reading = client.request(call(`x${round}`))
        pair.upstream.closeConnections(how)
        const reply = await reading
        if (reply.status === 200) assert.equal(reply.body.toString(), `{"mark":"x${round}"}`)
        else assert.equal(reply.status, 502)
        assert.ok(pair.upstream.requestCount - count <= 1)
      }
      client.leave()
    })
  }
}
