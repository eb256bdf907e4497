import assert from 'node:assert/strict'
import { VERSION } from '../../src/kernel/runtime.ts'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf } from './own-client.ts'

/** Time passes between two reads, so that the gateway recomputes the overview. */
let passedMs = 0
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() + passedMs }
const bench = await startBillingBench({ clock, env: { TOLLGATE_DISCOUNT: '0.5' } })
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)

/** A new connection for each read: the gateway's clock advances by a minute, which closes idle ones. */
const AFRESH = { connection: 'close' }

async function overview() {
  passedMs += 60_000
  const { status, body } = await ask('GET', '/gateway/v1/overview', { headers: AFRESH })
  assert.equal(status, 200)
  return body
}
const attention = async () =>
  (await overview())['attention'] as Record<string, { count: number; data: unknown[] }>

const hello = { model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hello' }] }

async function call(key: string, body: unknown = hello, path = '/v1/chat/completions'): Promise<number> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      ...AFRESH,
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body),
  })
  await response.text()
  return response.status
}

test('without calls, all figures are 0 and nothing needs attention', async () => {
  const shown = await overview()
  const figures = ['requests', 'cost_usd', 'list_cost_usd', 'savings_usd', 'calls_in_flight', 'calls_waiting']
  for (const figure of figures) assert.equal(shown[figure], 0, figure)
  const none = { count: 0, data: [] }
  assert.deepEqual(shown['attention'], {
    ...{ keys_exhausted: none, keys_near_cap: none, keys_expiring: none, unpriced_models: [], refusals: [] },
    ...{ webhooks_failed_deliveries: 0, webhooks_disabled: 0 },
  })
})

test('the month matches usage, and the balance the account', async () => {
  assert.equal(await call(gateway.apiKey), 200)
  const shown = await overview()
  const { body } = await ask('GET', '/v1/usage')
  const total = body['total'] as Record<string, unknown>
  for (const figure of ['requests', 'cost_usd', 'list_cost_usd', 'savings_usd', 'credited_usd']) {
    assert.equal(shown[figure], total[figure], figure)
  }
  assert.ok(Number(shown['cost_usd']) > 0)
  assert.equal(shown['month'], new Date().toISOString().slice(0, 7))
  assert.deepEqual(shown['balance'], (await ask('GET', '/gateway/v1/balance')).body)
})

test('the overview names exactly the keys that are near their cap, spent or about to expire', async () => {
  const { id, key } = await gateway.createKey('nearly')
  assert.equal(await call(key), 200)
  const { month_spend_usd: spent } = (await ask('GET', `/v1/keys/${id}`)).body
  const cap = async (part: number) => {
    const monthly_budget_usd = Number((Number(spent) / part).toFixed(9))
    await ask('PATCH', `/v1/keys/${id}`, { json: { monthly_budget_usd } })
  }
  await cap(0.5)
  assert.equal((await attention())['keys_near_cap']?.count, 0)
  await cap(0.85)
  const near = (await attention())['keys_near_cap']
  assert.equal(near?.count, 1)
  const [named] = (near?.data ?? []) as { id: string; name: string; percent: number }[]
  assert.deepEqual([named?.id, named?.name], [id, 'nearly'])
  assert.ok(named !== undefined && named.percent >= 84 && named.percent <= 85)
  await cap(1)
  const spentUp = await attention()
  assert.deepEqual([spentUp['keys_near_cap']?.count, spentUp['keys_exhausted']?.count], [0, 1])
  // A key with a cap of 0 is not reported: its operator disabled it.
  await gateway.createKey('nothing', { monthly_budget_usd: 0 })
  assert.equal((await attention())['keys_exhausted']?.count, 1)

  const daily = await gateway.createKey('daily', { daily_budget_usd: 0.000000001 })
  assert.equal(await call(daily.key), 200)
  const { data } = (await attention())['keys_exhausted'] ?? { data: [] }
  const ofDay = (data as { id: string; period: string }[]).filter(({ period }) => period === 'day')
  assert.deepEqual(
    ofDay.map(({ id }) => id),
    [daily.id],
  )
  await gateway.revokeKey(daily.id)

  const inDays = (days: number) => ({ expires_at: new Date(Date.now() + days * 86_400_000).toISOString() })
  await gateway.createKey('later', inDays(8))
  const soon = await gateway.createKey('soon', inDays(6))
  const expiring = (await attention())['keys_expiring']
  assert.equal(expiring?.count, 1)
  assert.deepEqual(
    expiring?.data.map((key) => (key as { id: string }).id),
    [soon.id],
  )
  await gateway.revokeKey(soon.id)
  await gateway.revokeKey(id)
  const none = await attention()
  assert.deepEqual([none['keys_expiring']?.count, none['keys_exhausted']?.count], [0, 0])
})

test('the overview lists unpriced models and refusals of the last day', async () => {
  const unpriced = { ...hello, model: 'claude-fable-x', max_tokens: 9 }
  assert.equal(await call(gateway.apiKey, unpriced, '/v1/messages'), 200)
  const { key } = await gateway.createKey('one model', { allowed_models: ['gpt-6-luna'] })
  for (let i = 0; i < 3; i += 1) assert.equal(await call(key, { ...hello, model: 'gpt-6-astra' }), 403)
  const shown = await attention()
  assert.deepEqual(shown['unpriced_models'], [{ model: 'claude-fable-x', requests: 1 }])
  assert.deepEqual(shown['refusals'], [{ code: 'model_not_allowed', calls: 3 }])
})

test('the overview shows version, store and alert thresholds', async () => {
  const { version, store, simulator: simulated, alert_thresholds_percent: thresholds } = await overview()
  assert.deepEqual([version, simulated, thresholds], [VERSION, false, [50, 80, 90]])
  assert.equal(store, gateway.databaseUrl === null ? 'sqlite' : 'postgres')
})
