import assert from 'node:assert/strict'
import type { Environment } from '../../src/config/read-config.ts'
import { runInThread } from '../support/command-thread.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { Provider, type Serve } from './provider.ts'

const DAY_MS = 86_400_000
const CALLS = 10_000
const DAYS = 5
/** At noon, so that the calls of a day are far from its ends. */
const FIRST_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 7 * DAY_MS + DAY_MS / 2
const ADMIN = { messages: 'sk-ant-admin-test', chat: 'sk-admin-test' }

let nowMs = FIRST_MS
const provider = new Provider(() => nowMs)
const url = await provider.listen()
const clock = { nowMs: () => nowMs, monotonicMs: () => performance.now() }
const gateway = await startGateway({
  messagesUrl: url,
  chatUrl: `${url}/v1`,
  clock,
  settings: { deferredPoll: true },
})
after(async () => {
  await gateway.close()
  await provider.close()
})

/** A number of tokens whose price at every rate is a whole number of nanodollars. */
const tokens = (n: number, most: number): number => 16 * (1 + ((n * 7919) % most))

/** Their number shares no factor with the periods of usage, so that each kind has all usage. */
const KINDS: readonly ((n: number) => readonly [path: string, serve: Serve])[] = [
  (n) => ['/v1/messages', { ...cachedOf(n), model: 'claude-opus-5-5', writtenHour: tokens(n, 40) }],
  (n) => ['/v1/messages', { ...cachedOf(n), model: 'claude-haiku-5-5' }],
  (n) => ['/v1/messages', { model: 'claude-haiku-5-5', input: 160_000, output: tokens(n, 9) }],
  (n) => ['/v1/messages', { ...cachedOf(n), model: 'claude-opus-5-5', tier: 'fast' }],
  (n) => ['/v1/messages', { ...cachedOf(n), model: 'claude-opus-5-5', searches: 1 + (n % 3) }],
  (n) => ['/v1/chat/completions', { ...cachedOf(n), model: 'gpt-6.1-sol' }],
  (n) => ['/v1/chat/completions', { model: 'gpt-6.1-sol', input: tokens(n, 90), output: tokens(n, 50) }],
  (n) => ['/v1/responses', { ...cachedOf(n), model: 'gpt-6.1-sol', tier: n % 2 === 0 ? 'flex' : 'priority' }],
  (n) => ['/v1/responses', { model: 'gpt-6.1-sol', input: 320_000, output: tokens(n, 9) }],
  (n) => ['/v1/responses', { ...cachedOf(n), model: 'gpt-6.1-sol', searches: n % 4 }],
  (n) => ['/v1/embeddings', { model: 'text-embedding-3-small', input: 50 * tokens(n, 30) }],
  (n) => ['/v1/audio/transcriptions', { model: 'whisper-1', seconds: 1 + (n % 600) }],
  (n) => ['/v1/images/generations', { model: 'gpt-image-2', input: tokens(n, 9), images: tokens(n, 90) }],
]

function cachedOf(n: number) {
  const [input, output] = [tokens(n, 400), tokens(n + 1, 200)]
  return { input, output, cached: tokens(n + 2, 900), written: n % 3 === 0 ? tokens(n, 100) : 0 }
}

function bodyOf(path: string, { model, searches, tier }: Serve): object {
  if (path === '/v1/messages')
    return {
      ...{ model, max_tokens: 4_000, messages: [{ role: 'user', content: 'Hi' }] },
      ...(tier === 'fast' ? { speed: 'fast' } : {}),
      ...(searches === undefined ? {} : { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    }
  if (path === '/v1/responses')
    return {
      ...{ model, input: 'Hi', store: false, ...(tier === undefined ? {} : { service_tier: tier }) },
      ...(searches === undefined ? {} : { tools: [{ type: 'web_search' }] }),
    }
  if (path === '/v1/audio/transcriptions') {
    const form = new FormData()
    form.set('model', model)
    form.set('file', new Blob(['speech']), 'speech.mp3')
    return form
  }
  if (path === '/v1/embeddings') return { model, input: 'Hi' }
  if (path === '/v1/images/generations') return { model, prompt: 'A cat', size: '1024x1024', quality: 'low' }
  return { model, messages: [{ role: 'user', content: 'Hi' }] }
}

async function send(
  method: string,
  path: string,
  served: unknown,
  body?: object,
  key = gateway.apiKey,
): Promise<string> {
  const isForm = body instanceof FormData
  const answer = await fetch(gateway.url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(isForm ? {} : { 'content-type': 'application/json' }),
      'x-serve': JSON.stringify(served),
      ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, `${method} ${path}: ${text}`)
  return text
}

async function makeCalls(): Promise<void> {
  const numbers = Array.from({ length: CALLS }, (_, n) => n).values()
  let made = 0
  async function caller(): Promise<void> {
    for (const n of numbers) {
      const kind = KINDS[n % KINDS.length]
      const [path, serve] = (kind as (typeof KINDS)[number])(n)
      await send('POST', path, serve, bodyOf(path, serve))
      made += 1
      if (made % (CALLS / DAYS) === 0 && made < CALLS) nowMs += DAY_MS
    }
  }
  await Promise.all(Array.from({ length: 24 }, caller))
  nowMs = FIRST_MS
  const lines = [cachedOf(1), cachedOf(2)].map((each) => ({ ...each, model: 'claude-opus-5-5' }))
  const params = bodyOf('/v1/messages', { model: 'claude-opus-5-5' })
  const requests = lines.map((_, n) => ({ custom_id: String(n), params }))
  const batch = JSON.parse(await send('POST', '/v1/messages/batches', lines, { requests })) as { id: string }
  await send('GET', `/v1/messages/batches/${batch.id}/results`, lines)
}

function run(args: readonly string[] = [], environment: Environment = {}) {
  provider.asked.length = 0
  return runInThread(['reconcile', '--tolerance', '0', ...args], {
    TOLLGATE_DATA_DIR: gateway.dataDir,
    TOLLGATE_MESSAGES_URL: url,
    TOLLGATE_CHAT_URL: `${url}/v1`,
    TOLLGATE_MESSAGES_ADMIN_KEY: ADMIN.messages,
    TOLLGATE_CHAT_ADMIN_KEY: ADMIN.chat,
    ...environment,
  })
}

await makeCalls()

test('ten thousand calls of all kinds on five days agree with the reports to the nanodollar', async () => {
  provider.faults = { pageRows: 3, expiresOnce: true, limitsOnce: true }
  const { code, stdout, stderr } = await run(['--json'])
  assert.equal(stderr, '')
  const { surfaces } = JSON.parse(stdout) as {
    surfaces: { rows: { ours: number; reported: number; within: boolean; model: string; kind: string }[] }[]
  }
  const rows = surfaces.flatMap((surface) => surface.rows)
  assert.deepEqual(
    rows.filter(({ ours, reported }) => ours !== reported),
    [],
  )
  assert.equal(code, 0)
  assert.ok(rows.length > 20 && rows.every(({ within }) => within))
  assert.deepEqual([...new Set(provider.asked.map(({ credential }) => credential))].sort(), [
    `Bearer ${ADMIN.chat}`,
    ADMIN.messages,
  ])
})

test('each difference is named in one sentence, and is the exit code', async (t) => {
  const all = [...provider.booked]
  t.afterEach(() => {
    provider.faults = {}
    provider.booked.splice(0, provider.booked.length, ...all)
  })
  const finding = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args)
    assert.equal(code, 1, stderr)
    for (const secret of Object.values(ADMIN)) assert.ok(!stdout.includes(secret))
    return stdout.slice(stdout.indexOf('Beyond'))
  }
  await t.test('a wrong price', async () => {
    for (const [n, call] of all.entries())
      if (call.model === 'text-embedding-3-small')
        provider.booked[n] = { ...call, tokenNanos: call.tokenNanos * 2n }
    assert.match(
      await finding('--surface', 'chat'),
      /^Beyond the tolerance:\n- text-embedding-3-small: the tokens agree, but the provider has the higher cost/,
    )
  })
  await t.test("a call past the gateway, unless only the gateway's key is compared", async () => {
    provider.book({ model: 'claude-haiku-5-5', input: 800 }, 'key_elsewhere', FIRST_MS)
    assert.match(
      await finding('--surface', 'messages'),
      /^Beyond the tolerance:\n- claude-haiku-5-5: the provider has more input tokens .* Calls went past the gateway/,
    )
    const { code } = await run(['--surface', 'messages', '--api-key-id', 'key_gateway'])
    assert.equal(code, 0)
  })
  await t.test('a model that only one side has', async () => {
    provider.book({ model: 'gpt-6-astra', input: 800 }, 'key_elsewhere', FIRST_MS)
    provider.booked.splice(
      0,
      provider.booked.length,
      ...provider.booked.filter(({ model }) => model !== 'gpt-image-2'),
    )
    const text = await finding('--surface', 'chat')
    assert.match(text, /\n- gpt-6-astra: only the provider reports it\./)
    assert.match(text, /\n- gpt-image-2: only the gateway recorded it\./)
  })
  await t.test('a lost call', async () => {
    const at = all.findIndex(({ model }) => model === 'gpt-6.1-sol')
    provider.booked.splice(at, 1)
    assert.match(await finding('--surface', 'chat'), /- gpt-6\.1-sol: the gateway has more input tokens/)
  })
  await t.test('cached tokens that the provider counts twice', async () => {
    provider.faults = { countsCachedTwice: true }
    assert.match(
      await finding('--surface', 'messages'),
      /- claude-haiku-5-5: the provider has more input tokens, exactly by its cached tokens/,
    )
  })
})

test("calls on an account's own upstream are left out, whatever its present setting is", async () => {
  const id = String((await gateway.manage('POST', '/gateway/v1/accounts', { name: 'Own' }))['id'])
  const { key } = (await gateway.manage('POST', `/v1/keys?account=${id}`, { name: 'own' })) as { key: string }
  const serve = { model: 'claude-haiku-5-5', input: 800 }
  const call = () => send('POST', '/v1/messages', serve, bodyOf('/v1/messages', serve), key)
  const use = (messages: object | null) =>
    gateway.manage('PATCH', `/gateway/v1/accounts/${id}`, { upstreams: { messages } })
  const agrees = async () => {
    const { code, stdout } = await run(['--surface', 'messages'])
    assert.equal(code, 0, stdout.slice(stdout.indexOf('Beyond')))
  }
  await call()
  await use({ url, key: null })
  await agrees()
  const others = provider.booked.length
  await call()
  // Another organisation pays it.
  provider.booked.splice(others)
  await agrees()
  await use(null)
  await agrees()
})

test('a late report of yesterday is not read, unless it is asked for', async () => {
  nowMs = Date.now() - DAY_MS
  const serve = { model: 'claude-haiku-5-5', input: 800 }
  await send('POST', '/v1/messages', serve, bodyOf('/v1/messages', serve))
  provider.booked.pop()
  assert.equal((await run(['--surface', 'messages'])).code, 0)
  const yesterday = new Date(nowMs).toISOString().slice(0, 10)
  const { code, stdout } = await run(['--surface', 'messages', '--end', yesterday])
  assert.deepEqual([code, /claude-haiku-5-5: the gateway has more input tokens/.test(stdout)], [1, true])
})

test('a report that cannot be read ends with one sentence and exit code 2', async () => {
  const answers = {
    'refused TOLLGATE_MESSAGES_ADMIN_KEY (401)': { status: 401, text: '{}' },
    'refused TOLLGATE_MESSAGES_ADMIN_KEY (403)': { status: 403, text: '{}' },
    'limits the rate of reports (429)': { status: 429, text: '', retryAfter: '90' },
    'answered 500. Try again later': { status: 500, text: '' },
    'no such report (404)': { status: 404, text: '' },
    'the answer is not JSON': { status: 200, text: '<html>' },
    'data is not as documented': { status: 200, text: '{"has_more":false}' },
    'answered 302': { status: 302, text: '' },
  }
  for (const [sentence, answer] of Object.entries(answers)) {
    provider.faults = { answer }
    const { code, stdout, stderr } = await run(['--surface', 'messages'])
    assert.deepEqual([code, stdout], [2, ''], sentence)
    assert.ok(stderr.includes(sentence) && stderr.trim().split('\n').length === 1, stderr)
    assert.ok(!stderr.includes(ADMIN.messages))
  }
  provider.faults = { pageRows: 1, repeatsCursor: true }
  assert.match((await run(['--surface', 'messages'])).stderr, /names a page twice/)
  provider.faults = { amount: 'NaN' }
  assert.match((await run(['--surface', 'chat'])).stderr, /amount\.value is not as documented/)
  provider.faults = {}
})

test('days, tolerance and credentials are checked before a report is read', async () => {
  const today = new Date().toISOString().slice(0, 10)
  const refusals: readonly (readonly [args: readonly string[], sentence: RegExp])[] = [
    [['--end', today], /--end must be before today/],
    [['--start', '2026-02-30'], /--start must be a date/],
    [['--start', '2026-11-05', '--end', '2026-11-04'], /--start must not be after --end/],
    [['--tolerance', '-1'], /--tolerance must be a percentage/],
    [['--surface', 'videos'], /--surface must be messages or chat/],
  ]
  for (const [args, sentence] of refusals) {
    const { code, stderr } = await run(args)
    assert.equal(code, 2)
    assert.match(stderr, sentence)
  }
  const none = { TOLLGATE_MESSAGES_ADMIN_KEY: '', TOLLGATE_CHAT_ADMIN_KEY: '' }
  const { code, stderr } = await run([], none)
  assert.equal(code, 2)
  assert.match(stderr, /Set TOLLGATE_MESSAGES_ADMIN_KEY or TOLLGATE_CHAT_ADMIN_KEY/)
  assert.deepEqual(provider.asked, [])
})
