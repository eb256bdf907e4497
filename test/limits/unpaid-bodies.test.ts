import assert from 'node:assert/strict'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { connect, type RawReply } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Surface, surfaces } from '../support/surfaces.ts'
import { chunk, message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
closeAfter(pair)

const MB = 1_000_000

/** Requests without a complete body: a gateway that answers them has not waited for the body. */
function announced(surface: Surface, key: string): Readonly<Record<string, Buffer>> {
  const line = `POST ${surface.readEndpoint} HTTP/1.1`
  const lines = ['Host: h', ...surface.lines(key)]
  const form = 'Content-Type: multipart/form-data; boundary=b'
  return {
    'a large body': message(line, [...lines, `Content-Length: ${40 * MB}`]),
    'a large form': message(line, [...lines, form, `Content-Length: ${40 * MB}`]),
    chunks: message(line, [...lines, 'Transfer-Encoding: chunked'], chunk('{')),
    'an expectation': message(line, [...lines, 'Expect: 100-continue', 'Content-Length: 10']),
    'a slow body': message(line, [...lines, 'Content-Length: 10'], '{'),
    'a compressed body': message(line, [...lines, 'Content-Encoding: gzip', 'Content-Length: 1000'], '\x1f'),
  }
}

async function ask(bytes: Buffer): Promise<RawReply> {
  const client = await connect(pair.gateway)
  const reply = await client.request(bytes)
  client.leave()
  return reply
}

for (const surface of surfaces) {
  test(`${surface.name}: under a spent cap, a call is refused before its body is read`, async () => {
    const { key } = await pair.gateway.createKey('spent', { monthly_budget_usd: 0 })
    const before = pair.upstream.requestCount
    for (const [what, request] of Object.entries(announced(surface, key))) {
      const reply = await ask(request)
      assertOwnError(reply, surface, 402, 'budget_exceeded')
      assert.deepEqual(reply.interim, [], `the client was asked to send ${what}`)
      assert.deepEqual(headerValues(reply.headerLines, 'x-svc-budget-cap-usd'), ['0'])
      assert.deepEqual(headerValues(reply.headerLines, 'x-svc-cost-usd'), ['0'])
      assert.equal(headerValues(reply.headerLines, 'x-svc-balance-usd').length, 1)
    }
    assert.equal(pair.upstream.requestCount, before)
  })

  test(`${surface.name}: under an unspent cap, the body is read`, async () => {
    const { key } = await pair.gateway.createKey('capped', { monthly_budget_usd: 5 })
    for (const [what, request] of Object.entries(announced(surface, key))) {
      const client = await connect(pair.gateway)
      const reply = client.read({ method: 'POST' })
      reply.catch(() => undefined)
      await client.send(request)
      if (what === 'an expectation') await client.interimArrived()
      // The gateway is still reading the body: a refusal would arrive before the reply to this other call.
      const early = await Promise.race([reply, pair.assertServes(surface, 'other')])
      assert.equal(early, undefined, what)
      client.leave()
    }
  })
}
