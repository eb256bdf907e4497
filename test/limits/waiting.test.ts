import assert from 'node:assert/strict'
import { changeDatabase } from '../support/read-database.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'
import { readLedger } from './read-ledger.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
const bench = await startGatedBench({ clock })
const { gateway, upstream } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

/** A cap below the hold of any call; equal to the cost of 200 output tokens. */
const CAP = { monthly_budget_usd: 0.0001 }

test('a cap raised by another process is noticed by the first waiting call, and none overtakes it', async () => {
  const { id, key } = await gateway.createKey('raised from beside', CAP)
  const sent = [await bench.send('still runs', key)]
  const running = await upstream.next()
  sent.push(await bench.send('is first in line', key))
  await bench.storeAnswered()
  await changeDatabase(
    gateway,
    `UPDATE budget SET monthly_budget_nanos = 1000000000 WHERE id = '${id.replace('key_', 'bud_')}'`,
  )
  sent.push(await bench.send('comes later', key))
  const next = [await upstream.next(), await upstream.next()]
  assert.deepEqual(
    next.map((call) => call.name),
    ['is first in line', 'comes later'],
  )
  for (const call of [running, ...next]) call.finish(1)
  for (const { reply } of sent) assert.equal((await reply).status, 200)
})

test('a call that waits while the month ends is admitted in the new one, beside the holds of the old one', async () => {
  clock.set('2026-12-31T23:59:59.000Z')
  const { id, key } = await gateway.createKey('new year', CAP)
  const first = await bench.send('in December', key)
  const old = await upstream.next()
  const second = await bench.send('in January', key)
  await bench.free(key)
  clock.set('2027-01-01T00:00:00.000Z')
  const young = await upstream.next()
  assert.equal(young.name, 'in January')
  old.finish(200)
  assert.equal((await first.reply).status, 200)
  young.finish(100)
  assert.equal((await second.reply).status, 200)
  await bench.assertBalanced()
  assert.deepEqual(
    [...(await readLedger(gateway).months(id))],
    [
      ['2026-12', { spentNanos: 100_000, heldNanos: 0 }],
      ['2027-01', { spentNanos: 50_000, heldNanos: 0 }],
    ],
  )
})
