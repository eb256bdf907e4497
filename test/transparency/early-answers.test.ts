import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import { startGateway } from '../support/gateway.ts'
import { startPair } from '../support/pair.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { after, test } from '../support/suite.ts'
import { providerKeys, surfaces } from '../support/surfaces.ts'
import { chunk, lastChunk, noise, sized } from '../support/wire-bytes.ts'

const rounds = 8
const body = noise(8_000_000)
const pair = await startPair()
after(() => pair.close())

async function startEarlyCloser() {
  const worker = new Worker(new URL('../support/early-closer.ts', import.meta.url))
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const url = `http://127.0.0.1:${port}`
  const gateway = await startGateway({
    messagesUrl: url,
    messagesKey: providerKeys.messages,
    chatUrl: `${url}/v1`,
    chatKey: providerKeys.chat,
  })
  const close = async () => {
    await gateway.close()
    await worker.terminate()
  }
  return { gateway, close }
}

test('a 413 that upstream sends in the middle of an upload, closing on the rest, is delivered', async (t) => {
  const { gateway, close } = await startEarlyCloser()
  t.after(close)
  const delivered: string[] = []
  for (let round = 0; round < rounds; round++) {
    for (const surface of surfaces) {
      for (const target of [surface.readEndpoint, surface.streamedEndpoint]) {
        const lines = ['Host: h', ...surface.lines(gateway.apiKey)]
        const reply = await exchange(gateway, sized(`POST ${target} HTTP/1.1`, lines, body))
        delivered.push(`${target} ${reply.statusLine} ${reply.body.toString()} ${reply.ended}`)
      }
    }
  }
  const expected = /^\S+ HTTP\/1\.1 413 Payload Too Large {"error":"too large"} complete$/
  const lost = delivered.filter((one) => !expected.test(one))
  assert.deepEqual(lost, [], `${lost.length} of ${delivered.length} were lost`)
})

for (const surface of surfaces) {
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
