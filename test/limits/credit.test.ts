import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { type GatedBench, startGatedBench } from './gated-bench.ts'

const topUp = ({ gateway }: GatedBench, amount_usd: number) => gateway.prepay(amount_usd)

async function withBench(run: (bench: GatedBench) => Promise<void>): Promise<void> {
  await using bench = await startGatedBench()
  await run(bench)
  await bench.assertBalanced()
}

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
