import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { test } from '../support/suite.ts'
import { type GatedBench, startGatedBench } from './gated-bench.ts'
import { drawCall, drawChance, send } from './random-calls.ts'
import { nanosOf, usdOf } from './read-ledger.ts'

const topUp = ({ gateway }: GatedBench, amount_usd: number) => gateway.prepay(amount_usd)

async function withBench(run: (bench: GatedBench) => Promise<void>): Promise<void> {
  await using bench = await startGatedBench()
  await run(bench)
  await bench.assertBalanced()
}

test('credit is one limit over all keys: 300 concurrent calls of four keys exceed it by at most one call', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  await using bench = await startBillingBench()
  const creditNanos = 8_000_000
  await bench.credit(usdOf(creditNanos))
  const keys = await Promise.all(
    [null, null, 0.001, 0.004].map((cap) =>
      bench.gateway.createKey(`cap ${cap}`, { monthly_budget_usd: cap }),
    ),
  )
  const answers = await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      const call = drawCall(chance)
      return { call, reply: await send(bench, call, keys[i % keys.length]?.key ?? '') }
    }),
  )
  await bench.assertBalanced()
  const served = answers.filter(({ reply }) => reply.status === 200).map(({ call }) => call.costNanos)
  const charged = served.reduce((sum, cost) => sum + cost, 0)
  const balance = await bench.balance()
  assert.equal(nanosOf(balance['charged_usd']), charged)
  assert.equal(nanosOf(balance['balance_usd']), creditNanos - charged)
  assert.equal(balance['held_usd'], 0)
  assert.ok(charged >= creditNanos, 'the calls cost more than the credit')
  assert.ok(charged - Math.max(...served) < creditNanos, 'more than one call above the credit')
  for (const { reply, call } of answers) {
    if (reply.status === 200) continue
    const { code } = JSON.parse(reply.body.toString()).error
    assert.ok(code === 'credit_balance_exhausted' || code === 'budget_exceeded', code)
    if (code === 'budget_exceeded') continue
    assert.equal(reply.status, call.surface === 'messages' ? 400 : 429)
    assert.ok(Number(reply.header('x-svc-balance-usd')) <= 0, 'refused before the credit was used up')
  }
})

test('without any added credit nothing is enforced, and the balance can be negative', () =>
  withBench(async (bench) => {
    const sent = [
      await bench.send('one', bench.gateway.apiKey),
      await bench.send('two', bench.gateway.apiKey, { surface: 'chat' }),
    ]
    for (const _ of sent) (await bench.upstream.next()).finish(200)
    for (const { reply } of sent) assert.equal((await reply).status, 200)
    const balance = await bench.gateway.manage('GET', '/gateway/v1/balance')
    assert.deepEqual([balance['balance_usd'], balance['enforced']], [-0.0002, false])
  }))

test('a top-up admits waiting calls while another call runs', () =>
  withBench(async (bench) => {
    await topUp(bench, 0.0001)
    const [mine, yours] = [await bench.gateway.createKey('mine'), await bench.gateway.createKey('yours')]
    const first = await bench.send('runs', mine.key)
    const running = await bench.upstream.next()
    const waiting = [await bench.send('waits', yours.key), await bench.send('waits behind', mine.key)]
    assert.equal((await bench.free(yours.key)).status, 200, 'a free call needs no credit')
    await topUp(bench, 1)
    const next = [await bench.upstream.next(), await bench.upstream.next()]
    assert.deepEqual(next.map((call) => call.name).sort(), ['waits', 'waits behind'])
    for (const call of [running, ...next]) call.finish(200)
    for (const { reply } of [first, ...waiting]) assert.equal((await reply).status, 200)
  }))

test('waiting calls are refused when the credit is spent, and served again after a top-up', () =>
  withBench(async (bench) => {
    await topUp(bench, 0.0001)
    const [mine, yours] = [await bench.gateway.createKey('mine'), await bench.gateway.createKey('yours')]
    const first = await bench.send('uses all up', mine.key)
    const running = await bench.upstream.next()
    const messages = await bench.send('messages', yours.key)
    const chat = await bench.send('chat', mine.key, { surface: 'chat' })
    running.finish(1_000)
    assert.equal((await first.reply).header('x-svc-balance-usd'), '-0.0004')
    assert.equal((await messages.reply).status, 400)
    assert.equal((await chat.reply).status, 429)
    assert.equal((await chat.reply).header('retry-after'), undefined)
    await topUp(bench, 0.0004)
    const still = await bench.send('at zero', yours.key)
    assert.equal((await still.reply).status, 400)
    await topUp(bench, 0.0001)
    const again = await bench.send('above zero', yours.key)
    ;(await bench.upstream.next()).finish(1)
    assert.equal((await again.reply).status, 200)
  }))
