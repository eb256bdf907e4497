import assert from 'node:assert/strict'
import { type Address, connect, type RawConnection } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { message } from '../support/wire-bytes.ts'
import { startGatedBench } from './gated-bench.ts'

const MAX = 3
const bench = await startGatedBench({ settings: { callsInFlightPerKeyMax: MAX } })
const { gateway, upstream } = bench
closeAfter(bench)

test('a key has a maximum of calls in flight, beyond which it is refused; other keys are not affected', async () => {
  for (const surface of ['messages', 'chat'] as const) {
    const { key } = await gateway.createKey('greedy')
    const inFlight = await Promise.all(
      Array.from({ length: MAX }, async (_, i) => {
        const sent = await bench.send(`greedy ${surface} ${i}`, key, { surface, stream: i === 0 })
        return { sent, call: await upstream.next() }
      }),
    )
    const count = upstream.names.length
    const refused = await (await bench.send('one more', key, { surface })).reply
    assert.equal(refused.status, 429)
    assert.equal(refused.header('retry-after'), '1')
    const { error } = JSON.parse(refused.body.toString())
    assert.equal(error.code, 'too_many_calls')
    assert.equal(error.type, surface === 'messages' ? 'rate_limit_error' : 'requests')
    assert.equal(refused.header('x-svc-cost-usd'), '0')
    // Free calls count too.
    assert.equal((await bench.free(key)).status, 429)
    assert.equal(upstream.names.length, count)

    const other = await gateway.createKey('modest')
    assert.equal((await (await bench.send('at once 1', other.key, { surface })).reply).status, 200)

    inFlight[0]?.call.finish(1)
    assert.equal((await inFlight[0]?.sent.reply)?.status, 200)
    assert.equal((await (await bench.send('at once 2', key, { surface })).reply).status, 200)
    for (const { call } of inFlight.slice(1)) call.finish(1)
    for (const { sent } of inFlight) await sent.reply
  }
})

/** A request whose body never ends; resolves when the gateway waits for the body. */
async function half(at: Address, key: string): Promise<RawConnection> {
  const client = await connect(at)
  const lines = ['Host: h', `x-api-key: ${key}`, 'Expect: 100-continue', 'Content-Length: 100']
  client.read({ method: 'POST' }).catch(() => undefined)
  await client.send(message('POST /v1/messages HTTP/1.1', lines))
  await client.interimArrived()
  return client
}

test("calls that wait under a cap, and incomplete uploads, count towards their key's calls in flight", async () => {
  const { key } = await gateway.createKey('capped', { monthly_budget_usd: 0.0001 })
  const running = await bench.send('running', key)
  const call = await upstream.next()
  const waiting = await bench.send('waiting', key)
  const client = await half(gateway, key)
  assert.equal((await bench.free(key)).status, 429)
  client.leave()
  await until('another call of the key is accepted', async () => (await bench.free(key)).status === 200)
  call.finish(100)
  assert.equal((await running.reply).status, 200)
  ;(await upstream.next()).finish(1)
  assert.equal((await waiting.reply).status, 200)
})

test('a call frees its slot however it ends', async () => {
  const one = await startGatedBench({ settings: { callsInFlightPerKeyMax: 1, bodyIdleTimeoutMs: 200 } })
  const { id, key } = await one.gateway.createKey('ends')
  const spent = await one.gateway.createKey('spent', { monthly_budget_usd: 0 })
  // The probe is not a free call, which is answered before it settles.
  const isFree = () =>
    until(
      'another call of the key is accepted',
      async () => (await (await one.send('at once 1', key)).reply).status === 200,
    )

  for (const stream of [false, true]) {
    const leaver = await one.send(`leaver ${stream}`, key, { stream })
    const call = await one.upstream.next()
    if (stream) {
      call.begin()
      await leaver.received('message_start')
    }
    assert.equal((await one.free(key)).status, 429)
    leaver.leave()
    await isFree()
  }
  // Calls refused for budget and for their body.
  for (let i = 0; i < 2; i++) {
    assert.equal((await (await one.send(`poor ${i}`, spent.key)).reply).status, 402)
    assert.equal((await (await one.send(`odd ${i}`, spent.key, { body: '{' })).reply).status, 400)
  }
  // The client of the first request leaves, the client of the second stops sending.
  const left = await half(one.gateway, key)
  assert.equal((await one.free(key)).status, 429)
  left.leave()
  await isFree()
  const silent = await half(one.gateway, key)
  await isFree()
  silent.leave()
  const broken = await one.send('broken', key)
  await one.upstream.next()
  one.upstream.breakOff()
  assert.equal((await broken.reply).status, 502)
  await isFree()
  await one.gateway.revokeKey(id)
  for (let i = 0; i < 2; i++) assert.equal((await (await one.send(`revoked ${i}`, key)).reply).status, 401)
  await one.assertBalanced()
  await one.close()
})
