import assert from 'node:assert/strict'
import { type Browser, chromium, type Page } from 'playwright-core'
import { build } from 'vite'
import type { RequestEntry } from '../../simulator/answer-request.ts'
import { findBrowser } from '../dashboard/find-browser.ts'
import { nanosOf } from '../limits/look-at-books.ts'
import { dig } from '../simulator/dig.ts'
import { after, before, test } from '../support/suite.ts'
import { endedTurns, nothingHeld, startSocketPair } from './metered-socket.ts'
import { create, startTurnsBench } from './turns-bench.ts'

const requests: RequestEntry[] = []
const bench = await startTurnsBench({}, { onRequest: (entry) => requests.push(entry) })
let browser: Browser
let page: Page
before(async () => {
  const { path: executablePath, env } = await findBrowser()
  browser = await chromium.launch({
    executablePath,
    env: { ...process.env, ...env } as Record<string, string>,
    // Certificate errors are ignored: the SDK speaks TLS alone, and the browser does not know the signer of ours.
    args: [
      ...['--no-sandbox', '--disable-gpu', '--ignore-certificate-errors'],
      ...['--disable-background-networking', '--disable-component-update'],
    ],
  })
  page = await browser.newPage()
  await page.goto(`${bench.gateway.url}/healthz`)
})
after(async () => {
  await browser.close()
  await bench.close()
})

interface Seen {
  readonly protocol: string
  readonly extensions: string
  readonly events: readonly unknown[]
  readonly closed: number | null
}

/** One turn from a page of an application. */
function turnInBrowser(key: string, message: object): Promise<Seen> {
  const run = `new Promise((resolve) => {
    const ws = new WebSocket(${JSON.stringify(`ws://127.0.0.1:${bench.gateway.port}/v1/responses`)},
      ['realtime', ${JSON.stringify(`openai-insecure-api-key.${key}`)}])
    const events = []
    const tell = (closed) => resolve({ protocol: ws.protocol, extensions: ws.extensions, events, closed })
    ws.onopen = () => ws.send(${JSON.stringify(JSON.stringify(message))})
    ws.onmessage = ({ data }) => {
      const event = JSON.parse(data)
      events.push(event)
      if (event.type === 'response.completed' || event.type === 'error') { tell(null); ws.close() }
    }
    ws.onclose = ({ code }) => tell(code)
  })`
  return page.evaluate<Seen>(run)
}

test('a browser has a turn with its key among the subprotocols, and upstream sees the provider’s', async () => {
  const { id, key } = await bench.gateway.createKey('browser')
  const seen = await turnInBrowser(key, create())
  assert.equal(seen.protocol, 'realtime')
  assert.equal(seen.extensions, '', 'nothing is compressed')
  assert.equal(dig(seen.events.at(-1), 'type'), 'response.completed')
  const [handshake] = requests.splice(0)
  const lines = handshake?.headersRaw ?? []
  const at = lines.findIndex((name) => name.toLowerCase() === 'sec-websocket-protocol')
  assert.equal(lines[at + 1], 'realtime, openai-insecure-api-key.pc')
  assert.ok(!lines.join().includes(key), 'the key of the client has gone no further')
  assert.ok(!lines.some((name) => name.toLowerCase() === 'authorization'))
  const { data } = (await bench.manage('GET', `/v1/keys/${id}/requests`)) as { data: unknown[] }
  const socketId = String(dig(data.at(-1), 'socket_id'))
  const [turn = {}] = await bench.turns(socketId, 1)
  assert.ok(nanosOf(turn['cost_usd']) > 0)
  assert.match(String(turn['user_agent']), /Chrome/)
})

test('a browser with a key that is not in force gets no socket, and upstream hears nothing', async () => {
  const { id, key } = await bench.gateway.createKey('gone')
  await bench.gateway.revokeKey(id)
  const seen = await turnInBrowser(key, create())
  assert.deepEqual([seen.events, seen.closed], [[], 1006])
  assert.deepEqual(requests.splice(0), [])
})

test('a browser whose turn is refused is told so', async () => {
  const { key } = await bench.gateway.createKey('poor', { monthly_budget_usd: 0 })
  const seen = await turnInBrowser(key, create())
  assert.equal(dig(seen.events[0], 'error.code'), 'budget_exceeded')
})

/** Bundles the SDK as an application has it in its page, under the name `sdk`. */
async function bundleSdk(): Promise<string> {
  const code = `
    export { default as OpenAI } from 'openai'
    export { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket'`
  const entry = {
    name: 'entry',
    enforce: 'pre' as const,
    resolveId: (id: string) => (id.endsWith('/sdk-entry') ? id : null),
    load: (id: string) => (id.endsWith('/sdk-entry') ? code : null),
  }
  const built = await build({
    configFile: false,
    logLevel: 'silent',
    plugins: [entry],
    build: { write: false, minify: false, lib: { entry: 'sdk-entry', formats: ['iife'], name: 'sdk' } },
  })
  const [{ output } = { output: [] }] = Array.isArray(built) ? built : []
  const [chunk] = output
  assert.ok(chunk?.type === 'chunk')
  return chunk.code
}

test('the SDK has a response of Realtime in a browser, with its key in the subprotocol', async (t) => {
  const pair = await startSocketPair({ secure: true })
  t.after(() => pair.close())
  const { id, key } = await pair.gateway.createKey('browser', { monthly_budget_usd: 5 })
  await page.evaluate(await bundleSdk())
  const seen = await page.evaluate<Seen>(`new Promise((resolve, reject) => {
    const client = new sdk.OpenAI({
      apiKey: ${JSON.stringify(key)},
      baseURL: ${JSON.stringify(`${pair.gateway.url}/v1`)},
      dangerouslyAllowBrowser: true,
    })
    const realtime = new sdk.OpenAIRealtimeWebSocket({ model: 'gpt-realtime', dangerouslyAllowBrowser: true }, client)
    const { socket } = realtime
    const events = []
    const content = [{ type: 'input_text', text: 'Hello.' }]
    realtime.on('error', reject)
    realtime.on('event', (event) => {
      events.push(event)
      if (event.type === 'session.created') {
        realtime.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
        realtime.send({ type: 'response.create', response: { output_modalities: ['text'] } })
      }
      if (event.type === 'response.done') realtime.close()
    })
    socket.addEventListener('close', ({ code }) =>
      resolve({ protocol: socket.protocol, extensions: socket.extensions, events, closed: code }))
  })`)
  assert.deepEqual([seen.protocol, seen.closed], ['realtime', 1000])
  const done = seen.events.at(-1)
  assert.deepEqual([dig(done, 'type'), dig(done, 'response.status')], ['response.done', 'completed'])
  const [turn] = await endedTurns(pair, id, 1)
  assert.equal(dig(turn, 'usage.output_tokens'), dig(done, 'response.usage.output_tokens'))
  assert.equal(dig(turn, 'estimated'), false)
  assert.ok(nanosOf(dig(turn, 'cost_usd')) > 0)
  await nothingHeld(pair, id)
})
