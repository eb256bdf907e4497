import assert from 'node:assert/strict'
import { pauseAfterMs } from '../../src/webhooks/deliver.ts'
import { test } from '../support/suite.ts'

test('a delivery is tried again after 5 s, 5 m, 30 m, 2 h, 5 h, 10 h and 10 h, and then not any more', () => {
  const minutes = [1, 2, 3, 4, 5, 6, 7].map((tries) => (pauseAfterMs(tries, 0) ?? 0) / 60_000)
  assert.deepEqual(minutes, [5 / 60, 5, 30, 120, 300, 600, 600])
  assert.equal(pauseAfterMs(8, 0), null)
})

test('each pause is up to a tenth longer by chance, and never shorter', () => {
  assert.equal(pauseAfterMs(2, 1), 330_000)
  assert.equal(pauseAfterMs(2, 0.5), 315_000)
})
