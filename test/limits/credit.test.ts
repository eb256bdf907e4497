import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { changeDatabase } from '../support/read-database.ts'
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

test('credit is one limit over all keys: 300 calls at once of four keys pass it by at most one call', async (t) => {
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

test('before any credit was added nothing is enforced, and the balance goes below zero', () =>
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

test('calls of all keys wait for credit in one line, in the order in which they came', () =>
  withBench(async (bench) => {
    await topUp(bench, 0.0001)
    const keys = await Promise.all(['a', 'b', 'c'].map((name) => bench.gateway.createKey(name)))
    const names = ['a 1', 'b 1', 'c 1', 'a 2', 'b 2']
    const sent = []
    for (const [i, name] of names.entries()) {
      sent.push(
        await bench.send(name, keys[i % 3]?.key ?? '', { surface: i % 2 === 0 ? 'messages' : 'chat' }),
      )
      // Each call is waiting before the next one comes.
      await bench.free(bench.gateway.apiKey)
    }
    for (const name of names) {
      const call = await bench.upstream.next()
      assert.equal(call.name, name)
      call.finish(10)
    }
    for (const { reply } of sent) assert.equal((await reply).status, 200)
  }))

test('credit that is added lets those in who wait, beside the call that runs', () =>
  withBench(async (bench) => {
    await topUp(bench, 0.0001)
    const [mine, yours] = [await bench.gateway.createKey('mine'), await bench.gateway.createKey('yours')]
    const first = await bench.send('runs', mine.key)
    const running = await bench.upstream.next()
    const waiting = [await bench.send('waits', yours.key), await bench.send('waits behind', mine.key)]
    assert.equal((await bench.free(yours.key)).status, 200, 'what is free needs no credit')
    await topUp(bench, 1)
    const next = [await bench.upstream.next(), await bench.upstream.next()]
    assert.deepEqual(next.map((call) => call.name).sort(), ['waits', 'waits behind'])
    for (const call of [running, ...next]) call.finish(200)
    for (const { reply } of [first, ...waiting]) assert.equal((await reply).status, 200)
  }))

test('credit that another process adds is found by whoever is first in line, and nobody goes before', () =>
  withBench(async (bench) => {
    await topUp(bench, 0.0001)
    const keys = await Promise.all(['a', 'b', 'c'].map((name) => bench.gateway.createKey(name)))
    const [a = '', b = '', c = ''] = keys.map(({ key }) => key)
    const first = await bench.send('runs', a)
    const running = await bench.upstream.next()
    const second = await bench.send('waits', b)
    await bench.storeAnswered()
    await changeDatabase(
      bench.gateway,
      `INSERT INTO credit (id, account_id, kind, amount_nanos, reason, actor_kind, balance_after_nanos, at_ms)
         VALUES ('crd_beside', 'default', 'top_up', 1000000000, 'test', 'system', 0, 1);
       INSERT INTO event (id, account_id, type, created_at_ms, actor_kind, data)
         VALUES ('evt_beside', 'default', 'credit.added', 1, 'system', '{"credit":{"id":"crd_beside"}}');
       UPDATE account SET credited_nanos = credited_nanos + 1000000000`,
    )
    const third = await bench.send('comes later', c)
    const next = [await bench.upstream.next(), await bench.upstream.next()]
    assert.deepEqual(
      next.map((call) => call.name),
      ['waits', 'comes later'],
    )
    for (const call of [running, ...next]) call.finish(1)
    for (const { reply } of [first, second, third]) assert.equal((await reply).status, 200)
  }))

test('calls that wait while the credit is used up are refused, and served again after a top-up', () =>
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

test('a key that waits for its own cap does not hold up the credit of others', () =>
  withBench(async (bench) => {
    await topUp(bench, 1)
    const capped = await bench.gateway.createKey('capped', { monthly_budget_usd: 0.0001 })
    const first = await bench.send('holds its cap', capped.key)
    const running = await bench.upstream.next()
    const second = await bench.send('waits for its cap', capped.key)
    await bench.free(capped.key)
    const other = await bench.send('has credit', bench.gateway.apiKey)
    const theirs = await bench.upstream.next()
    assert.equal(theirs.name, 'has credit')
    theirs.finish(1)
    assert.equal((await other.reply).status, 200)
    running.finish(200)
    assert.equal((await first.reply).status, 200)
    assert.equal((await second.reply).status, 402)
  }))
