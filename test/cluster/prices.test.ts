import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { openTestDatabase } from '../store/postgres-under-test.ts'
import { runCommand } from '../support/command-thread.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'

/** Each call uses 1,000 input and 100 output tokens. While `gate` is open, answers wait for it. */
const usage = { prompt_tokens: 1_000, completion_tokens: 100 }
const offered = ['gpt-7-new', 'gpt-8-next', 'gpt-6-luna'].map((id) => ({ id, object: 'model' }))
let gate: PromiseWithResolvers<void> | null = null
let arrived = 0
const upstream = createServer(async (request, response) => {
  const body = await readText(request)
  response.setHeader('content-type', 'application/json')
  if (request.method === 'GET') return void response.end(JSON.stringify({ object: 'list', data: offered }))
  arrived += 1
  await gate?.promise
  const { model } = JSON.parse(body) as { model: string }
  response.end(JSON.stringify({ object: 'chat.completion', model, choices: [], usage }))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))

const database = await openTestDatabase()
const receiver = await WebhookReceiver.start()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-two-nodes-'))
const file = join(folder, 'tollgate.json')
const settings = { prices: { fallbacks: { 'gpt-8*': 'gpt-6.1-sol' } }, webhooks: { allow_private: true } }
writeFileSync(file, JSON.stringify(settings))
const adminKey = randomBytes(24).toString('hex')
const shared = {
  TOLLGATE_DATABASE_URL: database.url,
  TOLLGATE_PEPPER: randomBytes(24).toString('hex'),
  TOLLGATE_ADMIN_KEY: adminKey,
  TOLLGATE_CHAT_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
  TOLLGATE_CONFIG: file,
}
const [a, b] = await Promise.all([serveTollgate(shared), serveTollgate(shared)])
after(async () => {
  await Promise.all([a.dispose(), b.dispose(), receiver.close()])
  upstream.close()
  await database.close()
  await stopPostgres()
  rmSync(folder, { recursive: true })
})

type Node = typeof a
type Json = Readonly<Record<string, unknown>>

async function manage(node: Node, method: string, path: string, body?: object): Promise<Json> {
  const answer = await fetch(node.url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${text}`)
  return JSON.parse(text) as Json
}

async function createKey(): Promise<string> {
  return String((await manage(a, 'POST', '/v1/keys', { name: 'capped', monthly_budget_usd: 100 }))['key'])
}

async function call(node: Node, key: string, model: string) {
  const answer = await fetch(`${node.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  const cost = answer.headers.get('x-svc-cost-usd')
  return {
    status: answer.status,
    cost,
    text: await answer.text(),
    id: answer.headers.get('x-svc-request-id'),
  }
}

/** A command on the first node's host. */
const command = (...args: string[]) => runCommand(args, { ...shared, ...a.environment })

async function assertAudited(): Promise<void> {
  const { code, stdout } = await command('audit')
  assert.deepEqual([code, /^No difference/.test(stdout)], [0, true], stdout)
}

const priceOf = (input: string, output: string) => ({
  ...{ provider: 'openai', mode: 'chat', context_window_tokens: 8_000, max_output_tokens: 1_000 },
  rates: { standard: { input, output, cache_read: '0.1' } },
})
const setPrice = (model: string, input: string, output: string) =>
  manage(a, 'PUT', `/gateway/v1/prices/${model}`, priceOf(input, output))

const missing = async (node: Node) =>
  (await manage(node, 'GET', '/gateway/v1/prices/missing'))['data'] as readonly Json[]

test('a new model is refused and announced; its price is set on one node, and the other one admits and bills it', async () => {
  const knowsOffered = async (node: Node) => (await missing(node)).some(({ offered }) => offered === true)
  for (const node of [a, b]) await until('the node knows the models', () => knowsOffered(node))
  await manage(a, 'POST', '/gateway/v1/webhooks', { url: receiver.url, events: ['call.unpriced'] })
  const key = await createKey()
  const refused = await call(b, key, 'gpt-7-new')
  assert.equal(refused.status, 400)
  assert.match(
    refused.text,
    /gpt-7-new\\" has no price .* ask the operator to set its price \(tollgate prices set\)/,
  )
  const [message] = await receiver.until((messages) => messages.length === 1)
  const told = { model: 'gpt-7-new', request_id: refused.id, refused: true }
  assert.deepEqual(message?.json['data'], told)
  const events = await manage(a, 'GET', '/gateway/v1/events?type=call.unpriced')
  assert.deepEqual(
    (events['data'] as Json[]).map(({ data }) => data),
    [told],
  )
  await assertAudited()

  await setPrice('gpt-7-new', '2', '10')
  await until('the other node has the price', async () => (await call(b, key, 'gpt-7-new')).status === 200)
  assert.equal((await call(b, key, 'gpt-7-new')).cost, '0.003')
  assert.ok(!(await missing(b)).some(({ model }) => model === 'gpt-7-new'))
  await assertAudited()
})

test('a model under a fallback is rated again to the nanodollar when its price arrives', async () => {
  const key = await createKey()
  const { id, cost } = await call(b, key, 'gpt-8-next')
  assert.equal(cost, '0.003')
  const [row] = (await missing(a)).filter(({ model }) => model === 'gpt-8-next')
  assert.deepEqual([row?.['surface'], row?.['passed'], row?.['offered']], ['chat', 1, true])
  const { data } = await manage(a, 'GET', '/gateway/v1/events?type=call.unpriced')
  const told = { model: 'gpt-8-next', request_id: id, refused: false }
  assert.deepEqual((data as Json[])[0]?.['data'], told)
  await assertAudited()

  // 1,234,567.891 and 770,000 nanodollars, rounded once.
  await setPrice('gpt-8-next', '1.234567891', '7.7')
  const today = new Date().toISOString().slice(0, 10)
  const rerated = await command('rerate', '--start', today, '--model', 'gpt-8-next', '--apply', '--yes')
  assert.match(rerated.stdout, /Applied to 1 calls?: 0\.000995432 USD credited in all\.\n$/)
  await assertAudited()
})

test('200 calls in flight on two nodes are rated by the version of their admission, later ones by the new one', async () => {
  const key = await createKey()
  await setPrice('gpt-7-new', '2', '10')
  const opened = Promise.withResolvers<void>()
  gate = opened
  const before = arrived
  const calls = Array.from({ length: 200 }, (_, n) => call(n % 2 === 0 ? a : b, key, 'gpt-7-new'))
  await until('upstream has all calls', async () => arrived === before + 200)
  await setPrice('gpt-7-new', '4', '20')
  const standardInput = async (node: Node) => {
    const { models } = await manage(node, 'GET', '/gateway/v1/prices')
    const shown = (models as { id: string; prices: { rates: { standard: { input: string } } } }[]).find(
      ({ id }) => id === 'gpt-7-new',
    )
    return shown?.prices.rates.standard.input
  }
  await until('the other node has the new price', async () => (await standardInput(b)) === '4')
  gate = null
  opened.resolve()
  const costs = (await Promise.all(calls)).map(({ cost }) => cost)
  assert.deepEqual([...new Set(costs)], ['0.003'])
  assert.deepEqual(
    [(await call(a, key, 'gpt-7-new')).cost, (await call(b, key, 'gpt-7-new')).cost],
    ['0.006', '0.006'],
  )
  await assertAudited()
})
