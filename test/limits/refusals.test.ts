import assert from 'node:assert/strict'
import type { BilledReply } from '../billing/bench-of-one.ts'
import { exchange } from '../support/raw-client.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'

const bench = await startGatedBench({
  clock: clockAt('2026-12-20T12:00:00.000Z'),
  settings: { budgetWaitMs: 0 },
})
const { gateway, upstream } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

type SurfaceName = 'messages' | 'chat'
const surfaces: readonly SurfaceName[] = ['messages', 'chat']
const CAP_USD = 0.0001

interface Expected {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param?: string
  readonly details?: string
  readonly lines?: readonly string[]
}

/** The exact body, and every header line in order. */
function assertRefusal(reply: BilledReply, surface: SurfaceName, expected: Expected): void {
  const { status, type, code, message, param, details } = expected
  const id = reply.requestId
  assert.match(id, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.equal(reply.status, status)
  const words = JSON.stringify(message)
  const explained = (text: string) => (details === undefined ? '' : `,"details":{${text}${details}}`)
  const body =
    surface === 'messages'
      ? `{"type":"error","error":{"type":"${type}","message":${words},"code":"${code}"` +
        `${explained(`"error_code":"${code}",`)}},"request_id":"${id}"}`
      : `{"error":{"message":${words},"type":"${type}","param":${param === undefined ? 'null' : `"${param}"`},` +
        `"code":"${code}"${explained('')}}}`
  assert.equal(reply.body.toString(), body)
  const own = reply.headerLines.filter((line) => !/^(date|connection|keep-alive):/i.test(line))
  assert.deepEqual(
    own.map((line) => line.toLowerCase()).sort(),
    [
      'content-type: application/json',
      `content-length: ${body.length}`,
      `${surface === 'messages' ? 'request-id' : 'x-request-id'}: ${id.toLowerCase()}`,
      `x-svc-request-id: ${id.toLowerCase()}`,
      'x-svc-cost-usd: 0',
      'x-svc-list-cost-usd: 0',
      'x-svc-upstream-ms: 0',
      `x-svc-balance-usd: ${reply.header('x-svc-balance-usd')}`,
      ...(expected.lines ?? []),
    ].sort(),
  )
  assert.match(reply.header('x-svc-balance-usd') ?? '', /^-?\d+(\.\d+)?$/)
}

const budgetLines = (spent: string, held: string) => [
  `x-svc-budget-spent-usd: ${spent}`,
  `x-svc-budget-held-usd: ${held}`,
  'x-svc-budget-cap-usd: 0.0001',
  'x-svc-budget-resets-at: 2027-01-01t00:00:00.000z',
]
const budgetDetails = (spent: string, held: string) =>
  `"scope":"key","period":"month","spent_usd":${spent},"held_usd":${held},"cap_usd":0.0001,"resets_at":"2027-01-01T00:00:00.000Z"`

function postUnknown(surface: SurfaceName, key: string) {
  const head = [
    'POST /v1/of-tomorrow?x=1 HTTP/1.1',
    'Host: gateway',
    surface === 'messages' ? `x-api-key: ${key}` : `Authorization: Bearer ${key}`,
    'Content-Length: 2',
  ]
  return exchange(gateway, `${head.join('\r\n')}\r\n\r\n{}`)
}

for (const surface of surfaces) {
  const isMessages = surface === 'messages'

  test(`${surface}: a spent cap is 402 budget_exceeded with spend, holds, cap and reset`, async () => {
    const { key } = await gateway.createKey('spent', { monthly_budget_usd: CAP_USD })
    const { reply } = await bench.send(`${surface} spends`, key, { surface })
    ;(await upstream.next()).finish(250)
    assert.equal((await reply).status, 200)
    const refused = await (await bench.send(`${surface} too much`, key, { surface })).reply
    assertRefusal(refused, surface, {
      status: 402,
      type: 'billing_error',
      code: 'budget_exceeded',
      message:
        'The monthly budget of this key is exhausted: 0.000125 of 0.0001 USD spent. ' +
        'Wait until it resets on 1 January (UTC), or ask the operator for a larger budget.',
      details: budgetDetails('0.000125', '0'),
      lines: [...budgetLines('0.000125', '0'), 'x-should-retry: false'],
    })
  })

  test(`${surface}: a cap that calls in flight use up is 429 budget_held with retry-after`, async () => {
    const { id, key } = await gateway.createKey('held', { monthly_budget_usd: CAP_USD })
    const { reply } = await bench.send(`${surface} holds`, key, { surface })
    const running = await upstream.next()
    const refused = await (await bench.send(`${surface} held back`, key, { surface })).reply
    const held = String((await bench.record(id))['month_held_usd'])
    assert.ok(Number(held) >= CAP_USD)
    assertRefusal(refused, surface, {
      status: 429,
      type: isMessages ? 'rate_limit_error' : 'budget',
      code: 'budget_held',
      message:
        `Calls in flight have reserved the rest of the monthly budget of this key: 0 of 0.0001 USD spent, ${held} USD reserved. ` +
        'Retry when they have ended, or send a smaller max_tokens. ' +
        'The operator can set a larger budget, or budgets.mode "settled". ' +
        'The budget resets on 1 January (UTC).',
      details: budgetDetails('0', held),
      lines: [...budgetLines('0', held), 'retry-after: 2'],
    })
    running.finish(1)
    assert.equal((await reply).status, 200)
  })

  test(`${surface}: a model outside the allowlist is 403 model_not_allowed`, async () => {
    const model = isMessages ? 'claude-haiku-5-5' : 'gpt-6-luna'
    const { key } = await gateway.createKey('picky', { allowed_models: ['gpt-4o', 'claude-opus*'] })
    const refused = await (await bench.send(`${surface} stranger`, key, { surface })).reply
    assertRefusal(refused, surface, {
      status: 403,
      type: isMessages ? 'permission_error' : 'invalid_request_error',
      code: 'model_not_allowed',
      message: `This key may not use the model "${model}". Use one of its allowed_models: "gpt-4o", "claude-opus*".`,
      param: 'model',
      lines: ['x-should-retry: false'],
    })
  })

  test(`${surface}: the refusal of an unmetered endpoint names it`, async () => {
    for (const limit of [{ monthly_budget_usd: 1 }, { allowed_models: ['gpt-4o'] }]) {
      const { key } = await gateway.createKey('limited', limit)
      const refused = await postUnknown(surface, key)
      assert.equal(refused.status, 404)
      const { code, message } = JSON.parse(refused.body.toString()).error
      assert.equal(code, 'endpoint_not_metered')
      assert.equal(
        message,
        'This gateway cannot meter POST /v1/of-tomorrow, so no key with limits can call it. Check the path, or ask the operator for a key without limits.',
      )
    }
  })
}

test('no refused call has reached upstream', () => {
  assert.ok(
    upstream.names.every((name) => /spends|holds|free to err/.test(name)),
    upstream.names.join(', '),
  )
})

test('a revoked key is 401 on both surfaces, with its reason, at no cost and without a retry', async () => {
  const revoked = await gateway.createKey('revoked')
  await gateway.revokeKey(revoked.id)
  for (const surface of surfaces) {
    const refused = await (await bench.send(`${surface} revoked`, revoked.key, { surface })).reply
    assert.equal(refused.status, 401)
    const { type, code, message } = JSON.parse(refused.body.toString()).error
    assert.equal(type, surface === 'messages' ? 'authentication_error' : 'invalid_request_error')
    assert.deepEqual(
      [code, message],
      ['invalid_api_key', 'This API key was revoked. Ask the operator for a new one.'],
    )
    assert.equal(refused.header('x-svc-cost-usd'), '0')
    assert.equal(refused.header('x-should-retry'), 'false')
  }
})

test("credit held by calls in flight is 429 with retry-after, and exhausted credit uses upstream's error", async (t) => {
  const poor = await startGatedBench({ settings: { budgetWaitMs: 0 } })
  t.after(() => poor.close())
  await poor.gateway.prepay(0.0001)
  const message = 'Your credit balance is too low to access this gateway. Ask its operator to add credit.'
  const assertExhausted = async () => {
    for (const surface of surfaces) {
      const name = `${surface} refused`
      const refused = await (await poor.send(name, poor.gateway.apiKey, { surface })).reply
      assertRefusal(refused, surface, {
        status: surface === 'messages' ? 400 : 429,
        type: surface === 'messages' ? 'invalid_request_error' : 'insufficient_quota',
        code: 'credit_balance_exhausted',
        message,
        lines: ['x-should-retry: false'],
      })
    }
  }
  const { reply } = await poor.send('spends', poor.gateway.apiKey)
  const running = await poor.upstream.next()
  for (const surface of surfaces) {
    const held = await (await poor.send(`${surface} held`, poor.gateway.apiKey, { surface })).reply
    assertRefusal(held, surface, {
      ...{ status: 429, type: surface === 'messages' ? 'rate_limit_error' : 'budget', code: 'credit_held' },
      message:
        "Calls in flight have reserved the rest of the account's credit. Retry when they have ended, or ask the operator to add credit.",
      lines: ['retry-after: 2'],
    })
  }
  running.finish(200)
  assert.equal((await reply).header('x-svc-balance-usd'), '0')
  await assertExhausted()
  await poor.assertBalanced()
  assert.deepEqual(poor.upstream.names, ['spends'])
})
