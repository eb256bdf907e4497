import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
/** Its calls wait longer than any test, so a wait ends only for the tested reason. */
const patient = await startGatedBench({ clock, settings: { budgetWaitMs: 600_000 } })
const hasty = await startGatedBench({ clock, settings: { budgetWaitMs: 0 } })
closeAfter(patient, hasty)
afterEach(async () => {
  await patient.assertBalanced()
  await hasty.assertBalanced()
})

const CAP = { monthly_budget_usd: 0.0001 }

test('with budgets.wait_seconds 0 a call that would wait is refused at once, and served when the cap has room', async () => {
  const { id, key } = await hasty.gateway.createKey('hasty', CAP)
  const first = await hasty.send('holds all', key)
  const running = await hasty.upstream.next()
  const refused = await (await hasty.send('refused', key)).reply
  assert.equal(refused.status, 429)
  assert.equal(refused.header('retry-after'), '2')
  assert.equal(JSON.parse(refused.body.toString()).error.code, 'budget_held')
  assert.equal(refused.header('x-svc-budget-held-usd'), String((await hasty.record(id))['month_held_usd']))
  running.finish(100)
  assert.equal((await first.reply).status, 200)
  const again = await hasty.send('again', key)
  ;(await hasty.upstream.next()).finish(100)
  assert.equal((await again.reply).status, 200)
  assert.deepEqual(hasty.upstream.names, ['holds all', 'again'])
})

test('a wait above its limit ends with 429 while the other call runs on', async () => {
  await using bench = await startGatedBench({ settings: { budgetWaitMs: 50 } })
  const { key } = await bench.gateway.createKey('short wait', CAP)
  const first = await bench.send('runs', key)
  const running = await bench.upstream.next()
  const waiting = await Promise.all(['one', 'two', 'three'].map((name) => bench.send(name, key)))
  for (const { reply } of waiting) assert.equal((await reply).status, 429)
  running.finish(10)
  assert.equal((await first.reply).status, 200)
  assert.deepEqual(bench.upstream.names, ['runs'])
  await bench.assertBalanced()
})

test('calls that wait get 401 when their key is revoked, and the running call is billed', async (t) => {
  // The poll of the queue, which would find the revocation too, does not run.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { id, key } = await patient.gateway.createKey('revoked', CAP)
  const first = await patient.send('runs on', key)
  const running = await patient.upstream.next()
  const waiting = [await patient.send('waits', key), await patient.send('waits behind', key)]
  await patient.storeAnswered()
  await patient.gateway.revokeKey(id)
  for (const { reply } of waiting) {
    const refused = await reply
    assert.equal(refused.status, 401)
    const { code, message } = JSON.parse(refused.body.toString()).error
    assert.deepEqual(
      [code, message],
      ['invalid_api_key', 'This API key was revoked. Ask the operator for a new one.'],
    )
  }
  assert.equal((await patient.record(id))['month_waiting'], 0)
  running.finish(100)
  assert.equal((await first.reply).status, 200)
  assert.equal((await patient.record(id))['month_spend_usd'], 0.00005)
  assert.equal(patient.upstream.names.at(-1), 'runs on')
})

test('a waiting call gets 401 as soon as its key expires', async () => {
  const expiresAt = '2026-12-20T13:00:00.000Z'
  const { id, key } = await patient.gateway.createKey('expires', { ...CAP, expires_at: expiresAt })
  const first = await patient.send('before the end', key)
  const running = await patient.upstream.next()
  const waiting = await patient.send('too late', key)
  await until('the call waits', async () => (await patient.record(id))['month_waiting'] === 1)
  clock.set(expiresAt)
  const refused = await waiting.reply
  assert.equal(refused.status, 401)
  assert.equal(
    JSON.parse(refused.body.toString()).error.message,
    'This API key has expired. Ask the operator for a new one.',
  )
  assert.equal((await patient.record(id))['month_waiting'], 0)
  running.finish(100)
  assert.equal((await first.reply).status, 200)
  assert.equal(patient.upstream.names.at(-1), 'before the end')
})

test('a call that waits while the cap is spent gets 402 with the current spend', async () => {
  const { key } = await patient.gateway.createKey('spent', CAP)
  const first = await patient.send('spends all', key)
  const running = await patient.upstream.next()
  const waiting = await Promise.all(['a', 'b', 'c'].map((name) => patient.send(name, key)))
  running.finish(1_000)
  assert.equal((await first.reply).status, 200)
  for (const { reply } of waiting) {
    const refused = await reply
    assert.equal(refused.status, 402)
    assert.equal(refused.header('x-svc-budget-spent-usd'), '0.0005')
    assert.equal(refused.header('x-svc-budget-held-usd'), '0')
  }
})

test('a stopping gateway refuses waiting calls at once and lets running ones finish', async () => {
  const bench = await startGatedBench({ settings: { drainMs: 60_000, budgetWaitMs: 600_000 } })
  const { key } = await bench.gateway.createKey('at the end', CAP)
  const first = await bench.send('runs to its end', key)
  const running = await bench.upstream.next()
  const waiting = await bench.send('never sent', key)
  await bench.storeAnswered()
  const closed = bench.close()
  const refused = await waiting.reply
  assert.equal(refused.status, 429)
  assert.equal(JSON.parse(refused.body.toString()).error.code, 'budget_held')
  running.finish(10)
  assert.equal((await first.reply).status, 200)
  await closed
  assert.deepEqual(bench.upstream.names, ['runs to its end'])
})
