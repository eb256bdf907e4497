import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { ModelProbe } from '../../src/app/offered-models.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { shippedBook } from '../../src/pricing/price-list.ts'
import { startGateway } from '../support/gateway.ts'
import { after, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { askOf } from './own-client.ts'

const HOUR_MS = 60 * 60 * 1_000

const pages: Record<string, object> = {
  '/v1/models?limit=1000': { data: [{ id: 'claude-new-9' }, { id: 'claude-haiku-5-5' }], has_more: true },
  '/v1/models?limit=1000&after_id=claude-haiku-5-5': { data: [{ id: 'claude-last-9' }], has_more: false },
  '/chat/v1/models': { object: 'list', data: [{ id: 'gpt-9-nova' }, { id: 'gpt-6-luna' }] },
}
const usage = { input_tokens: 10, output_tokens: 5, prompt_tokens: 10, completion_tokens: 5 }
const lists: string[] = []
let [open, openMax] = [0, 0]
const upstream = createServer(async (request, response) => {
  const { url = '' } = request
  let text = ''
  for await (const chunk of request) text += String(chunk)
  if (request.method === 'GET') {
    lists.push(url)
    openMax = Math.max(openMax, ++open)
  }
  const { model } = text === '' ? { model: '' } : (JSON.parse(text) as { model: string })
  const answer = pages[url] ?? { type: 'message', role: 'assistant', content: [], model, usage }
  setImmediate(() => {
    if (request.method === 'GET') open -= 1
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
after(() => upstream.close())
const host = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
const gateway = await startGateway({
  messagesUrl: host,
  chatUrl: `${host}/chat/v1`,
  settings: { doctorProbe: true },
})
closeAfter(gateway)
const ask = askOf(gateway)

interface Row {
  readonly model: string
  readonly surface: string
  readonly refused: number
  readonly passed: number
  readonly last_at: string | null
  readonly offered: boolean
  readonly closest: string | null
}

const missing = async () => (await ask('GET', '/gateway/v1/prices/missing')).body['data'] as readonly Row[]

async function call(path: string, model: string, key: string) {
  const body = JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })
  const answer = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': key }, body })
  await answer.text()
  return answer.status
}

test('the start reads every page of each model list, one request at a time; models without a price are missing', async () => {
  await until('the models are known', async () => (await missing()).length > 0)
  assert.deepEqual(lists, Object.keys(pages))
  assert.equal(openMax, 1)
  const about = { refused: 0, passed: 0, last_at: null, offered: true }
  const rows = (await missing()).map(({ closest: _, ...row }) => row)
  assert.deepEqual(rows, [
    { model: 'claude-new-9', surface: 'messages', ...about },
    { model: 'claude-last-9', surface: 'messages', ...about },
    { model: 'gpt-9-nova', surface: 'chat', ...about },
  ])
})

test('names that upstream does not offer are counted together, cause no event, and are no label', async () => {
  const { key } = await gateway.createKey('capped', { monthly_budget_usd: 5 })
  for (const model of ['gpt-9-nova', 'gpt-9-nova', 'invented-1', 'invented-2'])
    assert.equal(await call('/v1/chat/completions', model, key), 400)
  // A model that answers exists, whatever the list says. It was called on the Messages surface.
  const calledAtMs = Date.now()
  assert.equal(await call('/v1/messages', 'claude-hidden', gateway.apiKey), 200)
  await until('the call is listed, with its time', async () => {
    const hidden = (await missing()).find(({ model }) => model === 'claude-hidden')
    return hidden !== undefined && Date.parse(hidden.last_at ?? '') >= calledAtMs
  })
  assert.equal(await call('/v1/messages', 'claude-hidden', key), 400)
  const shown = (await missing())
    .filter(({ last_at }) => last_at !== null)
    .map(({ model, surface, refused, passed, offered }) =>
      [model, surface, refused, passed, offered].join(' '),
    )
  assert.deepEqual(shown.sort(), [
    'claude-hidden messages 1 1 false',
    'gpt-9-nova chat 2 0 true',
    'other chat 2 0 false',
  ])
  const { body } = await ask('GET', '/gateway/v1/events?type=call.unpriced')
  const events = (body['data'] as { data: { model: string; refused: boolean } }[]).map(({ data }) => data)
  assert.deepEqual(events.map(({ model, refused }) => `${model} ${refused}`).sort(), [
    'claude-hidden false',
    'gpt-9-nova true',
  ])
  const scraped = await fetch(`${gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  const counts = (await scraped.text()).match(/^tollgate_unpriced_calls_total\{.*$/gm) ?? []
  assert.ok(
    counts.some((line) => line.includes('model="gpt-9-nova"') && line.endsWith(' 2')),
    counts.join('\n'),
  )
  assert.ok(!counts.some((line) => /invented|hidden/.test(line)))
})

test('an account with an own upstream may call models that the installation does not list', async () => {
  const upstreams = { chat: { url: `${host}/chat/v1`, key: null } }
  const account = (await ask('POST', '/gateway/v1/accounts', { json: { name: 'Own', upstreams } })).body['id']
  const created = await ask('POST', `/v1/keys?account=${account}`, {
    json: { name: 'k', monthly_budget_usd: 5 },
  })
  assert.equal(await call('/v1/chat/completions', 'only-there', String(created.body['key'])), 400)
  const rows = await missing()
  assert.ok(
    rows.some(({ model, refused }) => model === 'only-there' && refused === 1),
    JSON.stringify(rows),
  )
})

test('after the start, one node a day asks, the others take its answer, and a failed answer changes nothing', async () => {
  let nowMs = Date.parse('2026-11-19T12:00:00Z')
  let setting: string | null = null
  let onWrite = () => {}
  const store = {
    readSetting: async () => setting,
    async writeSetting(_name: string, value: string) {
      setting = value
      onWrite()
    },
    async replaceSetting(_name: string, from: string, to: string) {
      if (setting !== from) return false
      setting = to
      return true
    },
  }
  const config = readConfig({ TOLLGATE_CHAT_URL: `${host}/chat/v1`, TOLLGATE_CHAT_KEY: 'k' }, '/nowhere')
  const known = new Map<string, number | undefined>()
  const probes = ['a', 'b'].map(
    (node) =>
      new ModelProbe({
        ...{ store, config, log: createLog('silent'), priceSource: { book: shippedBook() } },
        clock: { ...systemClock, nowMs: () => nowMs },
        counts: { useOffered: (surface, models) => void known.set(`${node} ${surface}`, models?.size) },
      }),
  )
  const written = async (begin: () => void) => {
    const write = new Promise<void>((resolve) => {
      onWrite = resolve
    })
    begin()
    await write
    // The loops then pause.
    await new Promise((resolve) => setImmediate(resolve))
  }
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const before = lists.length
    for (const probe of probes) await written(() => probe.start())
    assert.equal(lists.length, before + 2)
    pages['/chat/v1/models'] = { data: [{ id: 'gpt-10' }] }
    nowMs += 24 * HOUR_MS
    await written(() => mock.timers.tick(HOUR_MS))
    assert.deepEqual([lists.length, known.get('a chat')], [before + 3, 1])
    pages['/chat/v1/models'] = { error: 'busy' }
    nowMs += 24 * HOUR_MS
    await written(() => mock.timers.tick(HOUR_MS))
    assert.deepEqual([lists.length, known.get('a chat'), known.get('b chat')], [before + 4, 1, 1])
  } finally {
    mock.timers.reset()
    for (const probe of probes) await probe.stop()
  }
})
