import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf } from './own-client.ts'

const bench = await startBillingBench({ env: { TOLLGATE_DISCOUNT: '0.07' } })
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)

async function call(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  key = gateway.apiKey,
) {
  const response = await fetch(gateway.url + path, {
    method: body === null ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  })
  await response.text()
  return response.headers.get('x-svc-request-id') ?? ''
}

/** An amount in 1e-18 dollars, parsed from the digits sent, which exceed a double. */
function exact(source: string): bigint {
  const [, sign = '', whole = '', decimals = ''] = /^(-?)(\d+)(?:\.(\d{1,18}))?$/.exec(source) ?? []
  const size = BigInt(whole + decimals.padEnd(18, '0'))
  return sign === '-' ? -size : size
}

type Exactly = { readonly [name: string]: unknown }

async function billOf(id: string, key = gateway.adminKey) {
  // The first request checks the response against the document; the second one reads the digits.
  assert.equal((await ask('GET', `/gateway/v1/requests/${id}?expand=bill`, { key })).status, 200)
  const response = await fetch(`${gateway.url}/gateway/v1/requests/${id}?expand=bill`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const revive = (name: string, value: unknown, { source }: { source?: string }) =>
    /_usd$|^rate_per$|^quantity$|^discount$/.test(name) && typeof value === 'number'
      ? exact(source ?? '')
      : value
  const parse = JSON.parse as (text: string, revive: unknown) => Exactly
  return parse(await response.text(), revive)
}

const messages = { max_tokens: 64, messages: [{ role: 'user', content: 'Hello, how much are you?' }] }

test('each bill line is quantity times rate, and the lines sum exactly to the totals', async () => {
  const calls = [
    await call(
      '/v1/messages',
      { model: 'claude-haiku-5-5', ...messages },
      { 'anthropic-version': '2023-06-01' },
    ),
    await call('/v1/chat/completions', { model: 'gpt-6-luna', messages: messages.messages }),
  ]
  for (const id of calls) {
    const request = await billOf(id)
    const bill = request['bill'] as Exactly
    const lines = bill['lines'] as readonly Exactly[]
    assert.ok(
      lines.length >= 2,
      JSON.stringify(bill, (_, value) => String(value)),
    )
    const amount = (of: Exactly, name: string) => of[name] as bigint
    for (const line of lines) {
      const product = amount(line, 'quantity') * amount(line, 'rate_usd')
      assert.equal(amount(line, 'amount_usd') * amount(line, 'rate_per'), product)
      assert.deepEqual(line['modifiers'], [])
      assert.equal(line['discount'], exact('0.07'))
      assert.match(String(line['label']), /^(?:input|output|cache read) tokens$/)
    }
    const sum = lines.reduce((total, line) => total + amount(line, 'amount_usd'), 0n)
    assert.equal(sum + amount(bill, 'rounding_usd'), amount(bill, 'list_cost_usd'))
    assert.equal(amount(bill, 'list_cost_usd') - amount(bill, 'discount_usd'), amount(bill, 'cost_usd'))
    assert.equal(bill['cost_usd'], request['cost_usd'])
    assert.equal(bill['list_cost_usd'], request['list_cost_usd'])
    assert.equal(bill['price_version'], request['price_version'])
    assert.ok(amount(bill, 'held_usd') >= amount(bill, 'cost_usd'))
    assert.match(String(bill['held_because']), /^This is the maximum cost of the call: .*was released\.$/)
    assert.equal(bill['note'], null)
  }
})

test('the bill of a call without a maximum cost says that it reserved the rest of the budget', async () => {
  const { key } = await gateway.createKey('of images', { monthly_budget_usd: 5 })
  const id = await call('/v1/images/generations', { model: 'gpt-image-2', prompt: 'x' }, {}, key)
  const bill = (await billOf(id))['bill'] as Exactly
  assert.equal(bill['held_usd'], exact('5'))
  assert.match(
    String(bill['held_because']),
    /^This call has no maximum cost, so it reserved the rest of the budget\. .*was released\.$/,
  )
})

test('a call that cost nothing has no bill lines and a reason', async () => {
  const free = (await billOf(await call('/v1/models', null)))['bill'] as Exactly
  assert.deepEqual([free['lines'], free['cost_usd'], free['held_usd']], [[], 0n, 0n])
  assert.match(String(free['note']), /free/)
  assert.match(String(free['held_because']), /^Nothing/)
  const model = { model: 'gpt-6-luna', messages: messages.messages }
  const failed = await call('/v1/chat/completions', model, { 'x-simulator': 'status=500' })
  const bill = (await billOf(failed))['bill'] as Exactly
  assert.deepEqual([bill['lines'], bill['cost_usd']], [[], 0n])
  assert.ok((bill['held_usd'] as bigint) > 0n)
})

test('an API key reads the bill of its own call, only with expand=bill', async () => {
  const id = await call('/v1/chat/completions', { model: 'gpt-6-luna', messages: messages.messages })
  assert.ok('bill' in (await billOf(id, gateway.apiKey)))
  assert.ok(!('bill' in (await ask('GET', `/gateway/v1/requests/${id}`)).body))
  const { key } = await gateway.createKey('another')
  assert.equal((await ask('GET', `/gateway/v1/requests/${id}?expand=bill`, { key })).status, 404)
  assert.equal((await ask('GET', `/gateway/v1/requests/${id}?expand=all`)).status, 400)
})
