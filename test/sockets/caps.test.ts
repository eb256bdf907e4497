import assert from 'node:assert/strict'
import { nanosOf } from '../limits/read-ledger.ts'
import { dig } from '../simulator/dig.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { refusalOf, simulated, startTurnsBench } from './turns-bench.ts'

const bench = await startTurnsBench()
closeAfter(bench)

const SOCKETS = 50
/** The cost of a turn: 1,000 × $10/M of output and 10 × $2.50/M of input. */
const TURN_NANOS = 10_025_000

test('fifty sockets of one key exceed its cap by at most one turn, and none is refused while the cap has room', async () => {
  const { id, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: 0.105 })
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => bench.open({ key })))
  const request = simulated('usage={"input_tokens":10,"output_tokens":1000}', { max_output_tokens: 1_000 })
  const outcomes = await Promise.all(sockets.map(async (socket) => (await socket.turn(request)).at(-1)))
  const served = outcomes.filter((event) => dig(event, 'type') === 'response.completed')
  // Ten turns cost $0.10025, less than the cap.
  assert.equal(served.length, 11)
  for (const event of outcomes) {
    if (served.includes(event)) continue
    assert.deepEqual(refusalOf(event), {
      type: 'error',
      status: 402,
      code: 'budget_exceeded',
      streamId: undefined,
    })
  }
  assert.equal(bench.entries.filter(({ kind }) => kind === 'message').length, served.length)
  await until('every call is settled', async () => {
    const shown = await bench.manage('GET', `/v1/keys/${id}`)
    assert.ok(nanosOf(shown['month_spend_usd']) <= 11 * TURN_NANOS)
    return nanosOf(shown['month_spend_usd']) === 11 * TURN_NANOS && nanosOf(shown['month_held_usd']) === 0
  })
  for (const { ws } of sockets) ws.close()
  await bench.assertBalanced()
})
