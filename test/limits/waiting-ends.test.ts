import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
/** Its calls wait longer than any test, so a wait ends only for the tested reason. */
const patient = await startGatedBench({ clock, settings: { budgetWaitMs: 600_000 } })
closeAfter(patient)
afterEach(() => patient.assertBalanced())

const CAP = { monthly_budget_usd: 0.0001 }

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
