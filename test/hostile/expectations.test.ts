import assert from 'node:assert/strict'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { assertOthersServed, assertRefused } from './attack.ts'

const pair = await startPair()
after(() => pair.close())

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name} ${target}: without a good key nobody is invited to send a body`, async () => {
      const revoked = await pair.gateway.createKey('revoked')
      await pair.gateway.revokeKey(revoked.id)
      const before = pair.upstream.receivedBytes
      for (const key of ['svc_live_nobody', revoked.key, pair.gateway.adminKey]) {
        const client = await connect(pair.gateway)
        const lines = ['Host: h', ...surface.lines(key), 'Expect: 100-continue', 'Content-Length: 1000000']
        const reply = await client.request(message(`POST ${target} HTTP/1.1`, lines))
        assertOwnError(reply, surface, 401, 'invalid_api_key')
        assert.deepEqual(reply.interim, [], 'no 100 before the refusal')
        client.leave()
      }
      assert.equal(pair.upstream.receivedBytes, before)
      await assertOthersServed(pair)
    })
  }

  test(`${surface.name}: an expectation that is not 100-continue is refused`, async () => {
    for (const expect of ['yes', '100-continued', '200-ok']) {
      const request = pair.request(surface, { lines: [`Expect: ${expect}`], body: surface.jsonBody })
      const reply = await assertRefused(pair, request, [417])
      assert.deepEqual(reply.interim, [])
    }
  })

  test(`${surface.name}: a request pipelined behind a refused expectation is not answered, and the connection is closed`, async () => {
    const lines = [
      'Host: h',
      ...surface.lines('svc_live_nobody'),
      'Expect: 100-continue',
      'Content-Length: 5',
    ]
    const client = await connect(pair.gateway)
    const reply = await client.request(message(`POST ${surface.readEndpoint} HTTP/1.1`, lines))
    assert.equal(reply.status, 401)
    assert.deepEqual(headerValues(reply.headerLines, 'connection'), ['close'])
    const count = pair.upstream.requestCount
    // The body was never invited, so nobody can tell whether these bytes are the body or the next request.
    await client.send(pair.ownCall(surface, 'behind'))
    const next = await client.read({ method: 'POST' })
    assert.deepEqual([next.statusLine, next.ended], ['', 'cut'])
    client.leave()
    assert.equal(pair.upstream.requestCount, count)
    await assertOthersServed(pair)
  })
}
