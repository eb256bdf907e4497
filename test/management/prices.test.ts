import assert from 'node:assert/strict'
import { PriceSource } from '../../src/app/price-source.ts'
import { versionAt } from '../../src/pricing/price-book.ts'
import { BUILT_IN_LIST, shippedBook } from '../../src/pricing/price-list.ts'
import { startGateway } from '../support/gateway.ts'
import { createLogLines } from '../support/log-lines.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, type OwnCall } from './own-client.ts'

const overlay = {
  models: [
    { id: 'gpt-6-luna', rates: { standard: { input: '77', output: '99' } } },
    {
      ...{ id: 'house-model', provider: 'openai', mode: 'chat' },
      rates: { standard: { input: '1.5', output: '3' } },
    },
  ],
}
const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  ...upstream.urls,
  settings: { priceFallbacks: { 'gpt-7*': 'gpt-6.1-sol', 'gpt-7-mini*': 'gpt-6-luna' } },
})
const changed = await startGateway({
  settings: { prices: { file: '/etc/prices.json', text: JSON.stringify(overlay) } },
})
closeAfter(gateway, changed, upstream)

interface Model {
  readonly id: string
  readonly provider: string
  readonly source: string
  readonly effective_from: string | null
  readonly prices: { readonly rates: { readonly standard: Readonly<Record<string, string>> } }
}

const ask = askOf(gateway)
const PRICE = { provider: 'openai', mode: 'chat', context_window_tokens: 8_000, max_output_tokens: 1_000 }
const RATES = { rates: { standard: { input: '2', output: '10', cache_read: '0.2' } } }

async function modelNamed(id: string): Promise<Model | undefined> {
  const { body } = await ask('GET', '/gateway/v1/prices')
  return (body['models'] as Model[]).find((model) => model.id === id)
}

async function priceEvents(): Promise<readonly { data: { prices: { models: string[] } } }[]> {
  const { body } = await ask('GET', '/gateway/v1/events?type=prices.updated')
  return body['data'] as never
}

/** A chat call for which upstream states 1,000 input and 100 output tokens. */
async function call(model: string, key = gateway.apiKey) {
  const usage = { prompt_tokens: 1_000, completion_tokens: 100 }
  const text = JSON.stringify({ model, object: 'chat.completion', choices: [], usage })
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`
  upstream.answer(() => [{ send: head + text }])
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  return { status: answer.status, cost: answer.headers.get('x-svc-cost-usd'), text: await answer.text() }
}

test('the price list has every model of the shipped book with its rates', async () => {
  const { body } = await ask('GET', '/gateway/v1/prices')
  const version = versionAt(shippedBook(), Date.now())
  assert.equal(body['overlay'], null)
  assert.equal(body['revision'], BUILT_IN_LIST.revision)
  const models = body['models'] as Model[]
  assert.deepEqual(
    models.map(({ id }) => id),
    version.models.map(({ id }) => id),
  )
  assert.ok(models.every(({ source }) => source === 'built_in'))
  // Rates of audio too: per hour, character and token.
  for (const { id, prices } of models) assert.deepEqual(prices.rates, version.names.get(id)?.entry.rates)
})

test('models of the price file have the source "file", and no price can be set for them', async () => {
  const askChanged = askOf(changed)
  const { body } = await askChanged('GET', '/gateway/v1/prices')
  assert.equal(body['overlay'], 'prices.json')
  const marked = (body['models'] as Model[]).filter(({ source }) => source === 'file')
  assert.deepEqual(marked.map(({ id }) => id).sort(), ['gpt-6-luna', 'house-model'])
  assert.equal(marked.find(({ id }) => id === 'gpt-6-luna')?.prices.rates.standard['input'], '77')
  const refused = await askChanged('PUT', '/gateway/v1/prices/gpt-6-luna', { json: RATES })
  assert.equal(refused.status, 409)
})

test('a capped key calls a model as soon as its price is set, and pays it', async () => {
  const { key } = await gateway.createKey('capped', { monthly_budget_usd: 10 })
  const before = await call('house/model:1', key)
  assert.equal(before.status, 400)
  assert.match(before.text, /model_not_priced/)
  const missing = async () =>
    (await ask('GET', '/gateway/v1/prices/missing')).body['data'] as { model: string }[]
  const [row] = await missing()
  assert.deepEqual(
    { ...row, last_at: null },
    {
      model: 'house/model:1',
      surface: 'chat',
      refused: 1,
      passed: 0,
      last_at: null,
      offered: false,
      closest: null,
    },
  )
  const path = `/gateway/v1/prices/${encodeURIComponent('house/model:1')}`
  const set = await ask('PUT', path, { json: { ...PRICE, ...RATES } })
  assert.deepEqual([set.status, set.body['object'], set.body['id']], [200, 'price', 'house/model:1'])
  assert.deepEqual((await call('house/model:1', key)).cost, '0.003')
  const shown = await modelNamed('house/model:1')
  assert.deepEqual([shown?.source, shown?.effective_from], ['set', set.body['effective_from']])

  assert.deepEqual(await missing(), [])
  // The same price again changes nothing, and causes no event.
  const events = (await priceEvents()).length
  assert.equal((await ask('PUT', path, { json: { ...PRICE, ...RATES } })).status, 200)
  assert.equal((await priceEvents()).length, events)
  // A price for later waits.
  const later = { ...PRICE, rates: { standard: { input: '9', output: '9' } }, effective_from: '2999-01-01' }
  assert.equal((await ask('PUT', path, { json: later })).body['effective_from'], '2999-01-01T00:00:00.000Z')
  assert.equal((await modelNamed('house/model:1'))?.prices.rates.standard['input'], '2')

  assert.equal((await ask('DELETE', path)).status, 204)
  assert.equal((await ask('DELETE', path)).status, 404)
  assert.equal(await modelNamed('house/model:1'), undefined)
  assert.equal((await call('house/model:1', key)).status, 400)
  assert.deepEqual((await priceEvents())[0]?.data.prices.models, ['house/model:1'])
})

test('the provider of a new model is whoever offers it, else that of a similar name, else the Chat API’s', async () => {
  const providers: unknown[] = []
  for (const name of ['claude-opus-99', 'house-claude', 'something']) {
    const path = `/gateway/v1/prices/${name}`
    const first = await ask('PUT', path, { json: RATES })
    const again = await ask('PUT', path, { json: RATES })
    assert.deepEqual([first.status, again.status], [200, 200], JSON.stringify(again.body))
    providers.push((await modelNamed(name))?.provider)
    await ask('DELETE', path)
  }
  assert.deepEqual(providers, ['anthropic', 'openai', 'openai'])
})

test('a price that cannot be used is refused with the member it names, and changes nothing', async () => {
  const bad = [
    [{ rates: { standard: { input: '-1', output: '2' } } }, /rates\.standard\.input/],
    [{ rates: { standard: { input: '0.1234567891', output: '2' } } }, /rates\.standard\.input/],
    [{ rates: { standard: { inputs: '1' } } }, /inputs/],
    [{ context_window_tokens: 9 }, /rates/],
    [{ ...RATES, effective_from: 'soon' }, /effective_from/],
    [{ ...RATES, id: 'other' }, /id/],
  ] as const
  for (const [body, named] of bad) {
    const { status, body: answer } = await ask('PUT', '/gateway/v1/prices/new-model', {
      json: { provider: 'openai', ...body },
    })
    assert.equal(status, 400, JSON.stringify(body))
    assert.match(JSON.stringify(answer), named)
  }
  assert.equal(await modelNamed('new-model'), undefined)
})

test('a pushed list adds its changes once, and large jumps need force', async () => {
  const list = BUILT_IN_LIST
  const decisions = (input: string) => ({ '/v1/decisions': { standard: { input, output: '1' } } })
  const rates = { standard: { input: '1', output: '2' } }
  const change = {
    id: 'test-1',
    effective_from: '2026-01-02',
    models: [{ id: 'pushed-model', provider: 'openai', rates, endpoints: decisions('1') }],
  }
  const next = { ...list, revision: 1_000, changes: [...list.changes, change] }
  const push = (body: object) => ask('POST', '/gateway/v1/prices/push', { json: body })

  const dry = await push({ ...next, dry_run: true })
  assert.deepEqual([dry.status, dry.body['added']], [200, ['pushed-model']])
  assert.equal(await modelNamed('pushed-model'), undefined)

  const pushed = await push(next)
  assert.deepEqual(pushed.body, {
    object: 'price_push',
    revision: 1_000,
    added: ['pushed-model'],
    changed: [],
  })
  assert.equal((await modelNamed('pushed-model'))?.source, 'pushed')
  const events = (await priceEvents()).length
  assert.deepEqual((await push(next)).body['added'], [])
  assert.equal((await priceEvents()).length, events)

  const rewritten = { ...change, effective_from: '2026-01-03' }
  const conflict = await push({ ...next, revision: 1_001, changes: [...list.changes, rewritten] })
  assert.equal(conflict.status, 409)
  assert.match(JSON.stringify(conflict.body), /test-1/)

  const jump = {
    id: 'test-2',
    effective_from: '2026-01-04',
    models: [{ id: 'pushed-model', rates: { standard: { input: '5', output: '2' } } }],
  }
  const dearer = {
    id: 'test-decisions',
    effective_from: '2026-01-03',
    models: [{ id: 'pushed-model', endpoints: decisions('5') }],
  }
  const ofEndpoint = await push({ ...next, revision: 1_002, changes: [...next.changes, dearer] })
  assert.equal(ofEndpoint.status, 409, 'rates of an endpoint jump too')
  const jumping = { ...next, revision: 1_002, changes: [...next.changes, jump] }
  const refused = await push(jumping)
  assert.equal(refused.status, 409)
  assert.match(JSON.stringify(refused.body), /"models":\["pushed-model"\]/)
  const forced = await push({ ...jumping, force: true })
  assert.deepEqual(forced.body['changed'], [{ model: 'pushed-model', unit: 'input', old: '1', new: '5' }])

  const more = { id: 'test-3', effective_from: '2026-01-05' }
  const given = { ...next, revision: 1_003 }
  const misspelt = { ...more, models: [{ id: 'pushed-model', rates: { standard: { inputs: '1' } } }] }
  const bad: readonly (readonly [call: OwnCall, status: number, named: RegExp])[] = [
    [
      { json: { ...given, base: { ...list.base, models: [{ id: 'x' }] } } },
      400,
      /model \\"x\\"|base\.models\[0\]/,
    ],
    [
      { json: { ...given, changes: [misspelt] } },
      400,
      /"param":"changes\[0\]\.models\[0\]\.rates\.standard\.inputs"/,
    ],
    [{ text: JSON.stringify(given).slice(0, -9) }, 400, /not (?:valid )?JSON/],
    [{ text: Buffer.alloc(100_000_000, ' ') }, 413, /8192 KiB/],
  ]
  for (const [call, status, named] of bad) {
    const answer = await ask('POST', '/gateway/v1/prices/push', call)
    assert.deepEqual(
      [answer.status, named.test(JSON.stringify(answer.body))],
      [status, true],
      JSON.stringify(answer.body),
    )
  }
  assert.equal((await ask('GET', '/gateway/v1/prices')).body['revision'], 1_002)
})

test('a model without a price runs under its fallback, flagged unpriced, the longest pattern first', async () => {
  const { key } = await gateway.createKey('fallback', { monthly_budget_usd: 10 })
  assert.equal((await call('gpt-7-sol', key)).cost, '0.003')
  const mini = await call('gpt-7-mini-2', key)
  const luna = await call('gpt-6-luna', key)
  assert.equal(mini.cost, luna.cost)
  const { body } = await ask('GET', '/gateway/v1/requests?model=gpt-7-sol')
  const [record] = body['data'] as { unpriced: boolean; priced_as_requested: boolean }[]
  assert.deepEqual([record?.unpriced, record?.priced_as_requested], [true, false])
})

test('only operators change prices', async () => {
  const { body } = await ask('POST', '/gateway/v1/admin-keys', {
    json: { name: 'v', role: 'viewer', account_id: 'default' },
  })
  const send = (method: string, path: string) =>
    fetch(gateway.url + path, { method, headers: { authorization: `Bearer ${body['key']}` } })
  assert.equal((await send('GET', '/gateway/v1/prices')).status, 200)
  assert.equal((await send('DELETE', '/gateway/v1/prices/gpt-6-luna')).status, 403)
})

test('a fallback to a model without a price has no effect, and the start says so', async () => {
  const { log, lines } = createLogLines()
  const store = {
    readPriceChanges: async () => 1,
    readPrices: async () => ({ changes: 1, listJson: null, sets: [] }),
    storePriceList: async () => {},
    storePriceVersion: async () => {},
  }
  const fallbacks = { 'gpt-9*': 'gpt-9-typo', 'gpt-8*': 'gpt-6-luna' }
  await PriceSource.open(
    { store: store as never, clock: { nowMs: Date.now } as never, log },
    { overlays: [], fallbacks },
  )
  assert.deepEqual(lines, ['warn: a fallback names a model that has no price, so it has no effect'])
})
