import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { clockAt } from '../limits/clock-at.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Answer, askOf, assertRefused, assertUnstored } from './own-client.ts'

/** The calls are on two days in November and one in December, the current month. */
const clock = clockAt('2026-11-29T23:00:00Z')
const bench = await startBillingBench({ clock, env: { TOLLGATE_DISCOUNT: '0.1' } })
const { gateway } = bench
closeAfter(bench)
const ask = askOf(gateway)
const usage = (query = '', key = gateway.adminKey) => ask('GET', `/v1/usage${query}`, { key })

/** Names that a spreadsheet would read as formulas. */
const names = ['=1+1', '@SUM(A1)', '-2+3', '+4', 'a "quoted", name', '\u{1f600}'] as const
const keys = await Promise.all(names.map((name) => gateway.createKey(name)))
const [first = { id: '', key: '' }] = keys

/** A call with odd token counts at small prices, so that sums have nine decimals. */
async function call(key: string, model: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'x-simulator': 'usage={"prompt_tokens":1001,"completion_tokens":3,"total_tokens":1004}',
    },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  // A call for a model unknown to upstream is recorded under the requested name.
  assert.equal(response.status, model.startsWith('gpt') ? 200 : 404, await response.text())
}

const days = ['2026-11-29', '2026-11-30', '2026-12-01']
for (const day of days) {
  clock.set(`${day}T12:00:00Z`)
  for (const { key } of keys) await call(key, 'gpt-6-luna')
  await call(first.key, 'gpt-4o-mini')
}
await call(first.key, '=cmd|calc')
clock.set('2026-12-02T12:00:00Z')

const NOVEMBER = 'start=2026-11-29&end=2026-12-01'

const dataOf = ({ status, body }: Answer) => {
  assert.equal(status, 200, JSON.stringify(body))
  return body['data'] as readonly Record<string, unknown>[]
}
const totalOf = ({ body }: Answer) => body['total'] as Record<string, unknown>

test('GET /v1/usage 200: by default, the current month to date in one bucket', async () => {
  const answer = await usage()
  assertUnstored(answer)
  const { data, total, ...rest } = answer.body
  assert.deepEqual(rest, {
    object: 'usage',
    start: '2026-12-01',
    end: '2026-12-02',
    group_by: [],
    has_more: false,
    next: null,
  })
  assert.deepEqual(data, [total])
  assert.equal(totalOf(answer)['requests'], 8)
})

test('GET /v1/usage 200: both days are inclusive, and 400 days are accepted', async () => {
  assert.equal(totalOf(await usage('?start=2026-11-30&end=2026-11-30'))['requests'], 7)
  assert.equal(totalOf(await usage('?start=2026-11-30&end=2026-12-01'))['requests'], 15)
  assert.equal((await usage('?start=2026-01-01&end=2027-02-04')).status, 200)
})

test('GET /v1/usage 200: amounts have all decimals, and savings are list cost minus cost', async () => {
  const response = await fetch(`${gateway.url}/v1/usage?start=2026-11-30&end=2026-11-30&group_by=model`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  const text = await response.text()
  const bucket = /\{"model":"gpt-4o-mini[^}]*\}/.exec(text)?.[0] ?? ''
  // 1,001 × $0.15/M + 3 × $0.60/M = $0.00015195 at list; 10 % less is $0.000136755.
  assert.ok(bucket.includes('"cost_usd":0.000136755,'), bucket)
  assert.ok(bucket.includes('"list_cost_usd":0.00015195,'), bucket)
  assert.ok(bucket.includes('"savings_usd":0.000015195,'), bucket)
  assert.ok(bucket.includes('"input_tokens":1001,"output_tokens":3,'), bucket)
})

test('GET /v1/usage 200: an API key sees its own usage and no other key’s', async () => {
  for (const { id, key } of keys) {
    const own = dataOf(await usage(`?${NOVEMBER}&group_by=key`, key))
    const all = dataOf(await usage(`?${NOVEMBER}&group_by=key`))
    assert.deepEqual(
      own,
      all.filter((bucket) => bucket['key'] === id),
    )
    assert.equal(totalOf(await usage(`?${NOVEMBER}`, key))['requests'], id === first.id ? 7 : 3)
  }
  const unused = await gateway.createKey('unused')
  assert.deepEqual(dataOf(await usage('?group_by=day', unused.key)), [])
  assert.equal(totalOf(await usage('', unused.key))['requests'], 0)
})

test('GET /v1/usage 400: an API key cannot name another key', async () => {
  const [, second = { key: '' }] = keys
  for (const param of ['key', 'key_id', 'account', 'api_key_id']) {
    const answer = await usage(`?${param}=${first.id}`, second.key)
    assertRefused(answer, 400, { code: 'bad_request', param })
  }
  assertRefused(await usage('?key=mine'), 400, { code: 'bad_request', param: 'key' })
  assert.equal((await usage(`?key=${first.id}`, first.key)).status, 200)
})

test('GET /v1/usage 200: by hour, for at most two days, in pages', async () => {
  const query = '?start=2026-11-29&end=2026-11-30&group_by=hour,model'
  const data = dataOf(await usage(query))
  const hours = ['2026-11-29T12:00:00.000Z', '2026-11-30T12:00:00.000Z']
  const places = hours.flatMap((hour) => [`${hour} gpt-4o-mini-2024-07-18`, `${hour} gpt-6-luna`])
  assert.deepEqual(
    data.map(({ hour, model }) => `${hour} ${model}`),
    places,
  )
  const first = await usage(`${query}&limit=3`)
  const rest = await usage(`${query}&after=${first.body['next']}`)
  assert.deepEqual([...dataOf(first), ...dataOf(rest)], data)
  assert.deepEqual(totalOf(first), totalOf(await usage('?start=2026-11-29&end=2026-11-30')))
  assertRefused(await usage(`?${NOVEMBER}&group_by=hour`), 400, { code: 'bad_request', param: 'group_by' })
})

const cursorOf = async (grouping: string) =>
  String((await usage(`?${NOVEMBER}&group_by=${grouping}&limit=1`)).body['next'])
const written = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const dayCursor = await cursorOf('day')

test('GET /v1/usage 400: invalid days and cursors', async () => {
  const bad: readonly [query: string, param: string][] = [
    ['start=2026-12-02&end=2026-12-01', 'start'],
    ['start=2026-12-03', 'start'],
    ['end=2026-11-30', 'end'],
    ['start=2026-01-01&end=2027-02-05', 'start'],
    ['end=2030-01-01', 'end'],
    ['group_by=day&after=', 'after'],
    ['group_by=day&after=abc', 'after'],
    [`group_by=day&after=${dayCursor}A`, 'after'],
    [`group_by=model&after=${dayCursor}`, 'after'],
    [`group_by=day&after=${await cursorOf('day,model')}`, 'after'],
    [`after=${dayCursor}`, 'after'],
    [`group_by=day&after=${written([['day', '2026-02-30']])}`, 'after'],
    [`group_by=model&after=${written([['model', null]])}`, 'after'],
    [`group_by=hour&after=${written({ start: '2026-12-01', end: '2026-12-01', hour: 'noon' })}`, 'after'],
    [`group_by=model&after=${written(null)}`, 'after'],
  ]
  for (const [query, param] of bad)
    assertRefused(await usage(`?${query}`), 400, { code: 'bad_request', param })
})
