import assert from 'node:assert/strict'
import { clockAt } from '../limits/clock-at.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { GROUPINGS } from '../store/conformance/usage-oracle.ts'
import { untilCounted } from '../support/simulator-counts.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { type BilledReply, type CallOptions, startBillingBench } from './bench-of-one.ts'

const clock = clockAt('2026-11-29T10:00:00Z')
const bench = await startBillingBench({ clock, env: { TOLLGATE_DISCOUNT: '0.137' } })
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const keys = [await bench.gateway.createKey('one'), await bench.gateway.createKey('two')]
const [one = { id: '', key: '' }, two = { id: '', key: '' }] = keys

interface Seen {
  readonly day: string
  readonly model: string
  readonly key: string
  readonly requests: number
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly unpriced_requests: number
  readonly estimated_requests: number
  credited_usd: number
  readonly requestId: string
}
const seen: Seen[] = []

const today = () => new Date(clock.nowMs()).toISOString().slice(0, 10)
const last = () => seen.at(-1) ?? assert.fail('there was no call')

/** Records the figures of a response. If it broke off before its trailers, the client reads the record. */
async function note(owner: { id: string; key: string }, day: string, reply: Noted): Promise<void> {
  const record = await bench.record(reply.requestId, owner.key)
  const figure = (name: string, member: string) => {
    const said = reply.figure(name)
    if (said !== undefined) assert.equal(nanosOf(said), nanosOf(record[member]), member)
    return nanosOf(said ?? record[member])
  }
  const usage = record['usage'] as Record<string, number>
  seen.push({
    day,
    model: String(record['model_served'] ?? record['model'] ?? ''),
    key: owner.id,
    requests: record['state'] === 'settled' ? 1 : 0,
    cost_usd: figure('x-svc-cost-usd', 'cost_usd'),
    list_cost_usd: figure('x-svc-list-cost-usd', 'list_cost_usd'),
    input_tokens: usage['input_tokens'] ?? 0,
    output_tokens: usage['output_tokens'] ?? 0,
    unpriced_requests: record['unpriced'] === true ? 1 : 0,
    estimated_requests: record['estimated'] === true ? 1 : 0,
    credited_usd: 0,
    requestId: reply.requestId,
  })
}

interface Noted {
  readonly requestId: string
  figure(name: string): string | undefined
}

const asNoted = (reply: BilledReply): Noted => ({
  requestId: reply.requestId,
  figure: (name) => reply.header(name) ?? reply.trailer(name),
})

async function call(
  owner: { id: string; key: string },
  path: string,
  body: unknown,
  options: CallOptions = {},
) {
  const day = today()
  const reply = await bench.call(path, body, { ...options, key: owner.key })
  await note(owner, day, asNoted(reply))
  return reply
}

const messages = {
  model: 'claude-haiku-5-5',
  max_tokens: 4_000,
  messages: [{ role: 'user', content: 'x'.repeat(350) }],
}
const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello, tokenizer' }] }
const asChat = { surface: 'chat' } as const

async function usageOf(query: string, key = bench.gateway.adminKey) {
  const response = await fetch(`${bench.gateway.url}/v1/usage?start=2026-11-01&end=2026-12-31${query}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  assert.equal(response.status, 200)
  return (await response.json()) as { data: Record<string, unknown>[]; total: Record<string, unknown> }
}

/** Hours are for at most two days. */
const groupings = GROUPINGS.filter((dimensions) => !dimensions.some((dimension) => dimension === 'hour'))

const MONEY = ['cost_usd', 'list_cost_usd', 'credited_usd'] as const
const COUNTS = [
  'requests',
  'input_tokens',
  'output_tokens',
  'unpriced_requests',
  'estimated_requests',
] as const

function figuresOf(calls: readonly Seen[]): Record<string, number> {
  const sum = (name: keyof Seen) => calls.reduce((all, each) => all + Number(each[name]), 0)
  return Object.fromEntries([...MONEY, ...COUNTS].map((name) => [name, sum(name)]))
}

function figuresIn(bucket: Record<string, unknown>): Record<string, number> {
  const money = MONEY.map((name) => [name, nanosOf(bucket[name])])
  assert.equal(nanosOf(bucket['savings_usd']), nanosOf(bucket['list_cost_usd']) - nanosOf(bucket['cost_usd']))
  return Object.fromEntries([...money, ...COUNTS.map((name) => [name, Number(bucket[name])])])
}

async function assertAddsUp(): Promise<void> {
  for (const viewer of [null, one, two]) {
    const visible = seen.filter(({ key }) => viewer === null || key === viewer.id)
    // A released call used nothing and creates no bucket.
    const counted = visible.filter(({ requests }) => requests > 0)
    for (const dimensions of groupings) {
      const query = dimensions.length === 0 ? '' : `&group_by=${dimensions.join()}`
      const { data, total } = await usageOf(query, viewer?.key)
      assert.deepEqual(figuresIn(total), figuresOf(visible))
      const placeOf = (of: Readonly<Record<string, unknown>> | Seen) =>
        JSON.stringify(dimensions.map((dimension) => (of as Record<string, unknown>)[dimension]))
      const groups = Map.groupBy(counted, placeOf)
      const wanted = new Map([...groups].map(([place, calls]) => [place, figuresOf(calls)]))
      if (dimensions.length === 0 && counted.length === 0) wanted.set('[]', figuresOf([]))
      assert.deepEqual(new Map(data.map((bucket) => [placeOf(bucket), figuresIn(bucket)])), wanted)
      assert.equal(data.length, wanted.size)
    }
  }
}

test('usage is 0 before the first call', assertAddsUp)

test('usage equals the sum of the headers of complete replies', async () => {
  for (const owner of keys) {
    await call(owner, '/v1/messages', messages, {
      simulate: 'usage={"input_tokens":1001,"output_tokens":77}',
    })
    await call(owner, '/v1/messages', messages, {
      simulate: 'usage={"input_tokens":3,"cache_read_input_tokens":999,"cache_creation_input_tokens":13}',
    })
    await call(owner, '/v1/chat/completions', chat, asChat)
    await call(owner, '/v1/responses', { model: 'gpt-4o', input: 'Hello' }, asChat)
  }
  assert.ok(last().cost_usd > 0)
  await assertAddsUp()
})

test('usage equals the sum of the trailers of streams', async () => {
  const streamed = await call(one, '/v1/messages', { ...messages, stream: true })
  assert.ok(streamed.trailer('x-svc-cost-usd') !== undefined)
  await call(two, '/v1/chat/completions', { ...chat, stream: true }, asChat)
  await call(two, '/v1/messages', { ...messages, stream: true }, { simulate: 'encode=gzip;tokens=40' })
  assert.ok(last().cost_usd > 0)
  await assertAddsUp()
})

test('usage includes the cost of calls that upstream cut', async () => {
  const streamed = { ...messages, stream: true }
  const cut = await call(one, '/v1/messages', streamed, { simulate: 'tokens=400;cut=event:12' })
  assert.equal(cut.ended, 'cut')
  assert.equal(last().estimated_requests, 1)
  assert.ok(last().cost_usd > 0)
  await call(two, '/v1/messages', messages, { simulate: 'tokens=400;cut=byte:200' })
  assert.equal(last().estimated_requests, 1)
  await assertAddsUp()
})

test('usage includes the cost of calls that the client left', async () => {
  const leaving = new AbortController()
  const response = await fetch(`${bench.gateway.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': two.key,
      'anthropic-version': '2023-06-01',
      'x-simulator': 'tokens=2000;drip=5;usage={"input_tokens":777}',
    },
    body: JSON.stringify({ ...messages, stream: true }),
    signal: leaving.signal,
  })
  assert.equal(response.status, 200)
  const reader = response.body?.getReader()
  for (let events = 0; events < 5; events += 1) await reader?.read()
  leaving.abort()
  const requestId = response.headers.get('x-svc-request-id') ?? ''
  await note(two, today(), { requestId, figure: (name) => response.headers.get(name) ?? undefined })
  assert.deepEqual([last().estimated_requests, last().input_tokens], [1, 777])
  assert.ok(last().cost_usd > 0)
  await assertAddsUp()
})

test('usage includes estimated, unpriced, free and failed calls as their clients saw them', async () => {
  await call(one, '/v1/messages', messages, { simulate: 'no-usage;tokens=100' })
  assert.equal(last().estimated_requests, 1)
  await call(one, '/v1/messages', { ...messages, model: 'claude-fable-x' })
  assert.deepEqual([last().unpriced_requests, last().cost_usd], [1, 0])
  await call(two, '/v1/messages', messages, { simulate: 'status=529' })
  assert.deepEqual([last().requests, last().cost_usd], [1, 0])
  await call(two, '/v1/models', undefined, { method: 'GET' })
  assert.deepEqual([last().requests, last().model], [1, ''])
  await assertAddsUp()
})

test('usage excludes released and refused calls', async () => {
  const released = await call(one, '/v1/messages', messages, { simulate: 'reset' })
  assert.deepEqual([released.status, last().requests], [502, 0])
  const refused = await bench.call('/v1/messages', messages, { key: 'svc_live_nonsense' })
  assert.deepEqual([refused.status, refused.header('x-svc-cost-usd')], [401, '0'])
  await assertAddsUp()
})

test('usage counts a call on the day it began, even if it ended in the next month', async () => {
  clock.set('2026-11-30T23:59:59.900Z')
  const before = bench.simulator.requests
  const streaming = call(one, '/v1/messages', { ...messages, stream: true }, { simulate: 'delay=50;drip=1' })
  await untilCounted(bench.simulator, ({ requests }) => requests > before)
  clock.set('2026-12-01T00:00:05Z')
  await streaming
  assert.equal(last().day, '2026-11-30')
  await call(one, '/v1/messages', messages)
  assert.equal(last().day, '2026-12-01')
  await assertAddsUp()
})

test('usage shows credited amounts beside charged ones', async () => {
  const paid = seen.filter(({ cost_usd }) => cost_usd > 0)
  const back = [paid[0], paid[3], paid.at(-1)].filter((each) => each !== undefined)
  const request_ids = back.map(({ requestId }) => requestId)
  const credit = () =>
    bench.gateway.manage('POST', '/gateway/v1/credits', { request_ids, reason: 'the key leaked' })
  await credit()
  await assert.rejects(credit(), /credited before/)
  for (const each of back) each.credited_usd = each.cost_usd
  await assertAddsUp()
})

test('usage is exact after many concurrent calls', async () => {
  const calls = Array.from({ length: 40 }, (_, i) => {
    const owner = i % 2 === 0 ? one : two
    const body = i % 3 === 0 ? { ...messages, stream: true } : messages
    return call(owner, '/v1/messages', body, { simulate: `tokens=${10 + i}` })
  })
  await Promise.all(calls)
  await assertAddsUp()
})
