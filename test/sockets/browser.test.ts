import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { RequestEntry } from '../../simulator/answer-request.ts'
import { findBrowser } from '../dashboard/find-browser.ts'
import { nanosOf } from '../limits/look-at-books.ts'
import { dig } from '../simulator/dig.ts'
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
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
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

/** One turn, as a page of an application has it. */
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
  assert.match(seen.extensions, /permessage-deflate/, 'a browser compresses')
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
