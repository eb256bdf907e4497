import assert from 'node:assert/strict'
import { dig } from '../simulator/dig.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'

const SOCKETS = 50
const COST_USD = 0.0128

/** Answers each message with a turn that is over at once. */
async function playTurns(): Promise<PlayedUpstream> {
  const session = { type: 'realtime', model: 'gpt-realtime' }
  const upstream = await playUpstream({ type: 'session.created', session })
  upstream.answer = (_message, say) => {
    const response = { id: `resp_${upstream.reached.length}`, status: 'completed' }
    say({ type: 'response.created', response })
    say({ type: 'response.done', response: { ...response, usage: usageOf(200, 100) } })
  }
  return upstream
}

/** One turn on a socket of its own. */
async function turn(upstream: PlayedUpstream, key: string): Promise<boolean> {
  const socket = await upstream.open('/v1/realtime?model=gpt-realtime', key).catch((error: Error) => error)
  if (socket instanceof Error) {
    assert.match(socket.message, /402/)
    return false
  }
  socket.send({ type: 'response.create' })
  const isLast = (event: unknown) => ['response.done', 'error'].includes(String(dig(event, 'type')))
  const last = (await socket.takeUntil(isLast)).at(-1)
  socket.ws.close()
  await socket.closed()
  if (dig(last, 'type') === 'response.done') return true
  assert.equal(dig(last, 'error.code'), 'budget_exceeded')
  return false
}

test('responses on fifty sockets of one key pass its cap by at most one, and none is refused while there is room', async (t) => {
  const upstream = await playTurns()
  t.after(() => upstream.close())
  const capUsd = 3.5 * COST_USD
  const { id, key } = await upstream.gateway.createKey('capped', { monthly_budget_usd: capUsd })
  const outcomes = await Promise.all(Array.from({ length: SOCKETS }, () => turn(upstream, key)))
  const served = outcomes.filter((isServed) => isServed).length
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  const spentUsd = await upstream.spentUsd(id)
  assert.equal(served, upstream.reached.length)
  assert.equal(Math.round(spentUsd / COST_USD), served)
  assert.ok(spentUsd >= capUsd && spentUsd < capUsd + COST_USD, `${spentUsd} dollars of ${capUsd}`)
})
