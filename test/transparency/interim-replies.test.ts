import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
after(() => pair.close())

const final = sized('HTTP/1.1 200 OK', ['X-A: 1'], '{"done":true}')

for (const surface of surfaces) {
  test(`${surface.name}: 102 and 103 come before the head, with their phrases and lines as they are`, async () => {
    const interim = [
      message('HTTP/1.1 102 Processing', []),
      message('HTTP/1.1 103 Early Hints', ['Link: </a>; rel=preload', 'link: </b>', 'X-Hint: caf\xe9']),
      message('HTTP/1.1 103 Early Hints', ['Link: </c>']),
      message('HTTP/1.1 199 Odd', ['x: y']),
      message('HTTP/1.1 103 Hints of our own', ['x: y']),
    ]
    const request = pair.request(surface, { body: surface.jsonBody })
    const { through } = await pair.compare(surface, request, () => [
      ...interim.map((bytes) => ({ send: bytes })),
      { send: final },
    ])
    assert.equal(through.reply.interim.length, 5)
    const together = Buffer.concat([...interim, final])
    await pair.compare(surface, request, () => [{ send: together }])
  })

  test(`${surface.name}: an unasked 100 of upstream is a broken answer, the call is not made again, and the next one is served`, async () => {
    const count = pair.upstream.requestCount
    pair.upstream.queue([{ send: message('HTTP/1.1 100 Continue', []) }, { send: final }])
    const reply = await pair.exchange(pair.request(surface, { body: surface.jsonBody }))
    assertOwnError(reply, surface, 502, 'upstream_unreachable')
    assert.equal(pair.upstream.requestCount - count, 1)
    await pair.assertServes(surface, 'own')
  })

  for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
    test(`${surface.name}: a client that expects 100 gets it, and ${target} gets the body without the Expect line`, async () => {
      const length = `Content-Length: ${surface.jsonBody.length}`
      const head = pair.head(surface, { target, lines: ['Expect: 100-continue', length] })
      const client = await connect(pair.gateway)
      const arrival = pair.upstream.nextRequest()
      const reading = client.read({ method: 'POST' })
      await client.send(head)
      await client.interimArrived()
      await client.send(surface.jsonBody)
      const reply = await reading
      assert.equal(reply.status, 200)
      assert.deepEqual(
        reply.interim.map((one) => one.statusLine),
        ['HTTP/1.1 100 Continue'],
      )
      const received = await arrival
      assert.equal(received.body.toString(), surface.jsonBody)
      assert.deepEqual(headerValues(received.headerLines, 'expect'), [])
      assert.equal((await client.request(pair.request(surface, { body: surface.jsonBody }))).status, 200)
      client.leave()
    })
  }
}
