import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { fillLog } from '../support/fill-log.ts'
import { startMeasuredGateway } from '../support/measured-gateway.ts'
import { closeAfter, test } from '../support/suite.ts'

const MiB = 1024 * 1024
/** 50 MiB of NDJSON. */
const ROWS = 60_000
const HELD_MAX = 12 * MiB
/** Counted after the first tenth of the export: a heap reaches its size only with use. */
const GROWTH_MAX = 128 * MiB
const TOKENS = 200

const simulator = await startSimulator({ chatKey: 'pc' })
const gateway = await startMeasuredGateway({ TOLLGATE_CHAT_URL: simulator.chatUrl, TOLLGATE_CHAT_KEY: 'pc' })
closeAfter(gateway, simulator)
const { id, key } = await gateway.createKey('busy')
await fillLog(gateway, id, ROWS, Date.parse('2026-01-01T00:00:00Z'))

const BODY = { model: 'gpt-6-luna', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

async function stream(): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-simulator': `tokens=${TOKENS}; drip=4` },
    body: JSON.stringify(BODY),
  })
  assert.equal(response.status, 200)
  return await response.text()
}

async function exportLog() {
  const response = await fetch(`${gateway.url}/gateway/v1/requests?format=ndjson&end=2026-01-31`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 200)
  assert.ok(response.body !== null)
  return response.body.getReader()
}

/** The events of a stream that do not change. */
const eventsOf = (text: string) => text.match(/"delta":\{[^}]*\}/g) ?? []

test(`an export of ${ROWS} calls uses constant memory, and a concurrent stream loses nothing`, async () => {
  // The first stream creates threads and caches that a gateway keeps.
  const alone = eventsOf(await stream())
  assert.ok(alone.length >= TOKENS / 2, `${alone.length} events`)
  const heldBefore = await gateway.heldBytes()

  const reader = await exportLog()
  const streamed: string[][] = []
  const held: number[] = []
  const resident: number[] = []
  let lines = 0
  for (let pauseAt = ROWS / 10; ; ) {
    const { done, value } = await reader.read()
    if (done) break
    for (const byte of value) if (byte === 0x0a) lines += 1
    if (lines < pauseAt) continue
    pauseAt += ROWS / 5
    // The export is not read during the stream: rows written ahead would accumulate.
    streamed.push(eventsOf(await stream()))
    resident.push(await gateway.residentBytes())
    held.push((await gateway.heldBytes()) - heldBefore)
  }
  assert.equal(lines, ROWS)
  assert.equal(streamed.length, 5)
  for (const events of streamed) assert.deepEqual(events, alone)
  const shown = (sizes: readonly number[]) => sizes.map((size) => Math.round(size / MiB)).join(', ')
  assert.ok(Math.max(...held) < HELD_MAX, `${shown(held)} MiB were held`)
  const [first = 0] = resident
  assert.ok(Math.max(...resident) - first < GROWTH_MAX, `the process had ${shown(resident)} MiB`)
})
