import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { fillLog } from '../support/fill-log.ts'
import { startMeasuredGateway } from '../support/measured-gateway.ts'

const MiB = 1024 * 1024
/** As NDJSON they have 166 MiB, so whoever holds all of them in any form is seen. */
const ROWS = 200_000
const GROWTH_MAX = 96 * MiB
const TOKENS = 400

const simulator = await startSimulator({ chatKey: 'pc' })
const gateway = await startMeasuredGateway({
  TOLLGATE_CHAT_URL: simulator.chatUrl,
  TOLLGATE_CHAT_KEY: 'pc',
})
after(async () => {
  await gateway.close()
  await simulator.close()
})
const { id, key } = await gateway.createKey('busy')
fillLog(gateway.dataDir, id, ROWS, Date.parse('2026-01-01T00:00:00Z'))

const BODY = { model: 'gpt-6-luna', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

async function stream(): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-simulator': `tokens=${TOKENS}; drip=2` },
    body: JSON.stringify(BODY),
  })
  assert.equal(response.status, 200)
  return await response.text()
}

async function exportLog(format: string) {
  const response = await fetch(`${gateway.url}/gateway/v1/requests?format=${format}&end=2026-01-31`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 200)
  assert.ok(response.body !== null)
  return response.body.getReader()
}

/** What every event of a stream has but for what is different each time. */
const eventsOf = (text: string) => text.match(/"delta":\{[^}]*\}/g) ?? []

for (const format of ['ndjson', 'csv']) {
  test(`an export of ${ROWS} calls as ${format} holds memory flat, and a stream beside it loses nothing`, async () => {
    // The threads and caches that every gateway has after a while.
    const alone = eventsOf(await stream())
    assert.ok(alone.length >= TOKENS / 2, `${alone.length} events`)
    const before = await gateway.residentBytes()

    const reader = await exportLog(format)
    const streamed: string[][] = []
    const resident: number[] = []
    let bytes = 0
    let lines = 0
    let pauseAt = 0
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      bytes += value.length
      for (const byte of value) if (byte === 0x0a) lines += 1
      if (lines < pauseAt) continue
      pauseAt += ROWS / 5
      // While the stream lasts nobody reads the export: what was written ahead for it would pile up.
      streamed.push(eventsOf(await stream()))
      resident.push(await gateway.residentBytes())
    }
    assert.equal(lines, format === 'csv' ? ROWS + 1 : ROWS)
    assert.ok(bytes > ROWS * 300)
    for (const events of streamed) assert.deepEqual(events, alone)
    const growth = resident.map((each) => Math.round((each - before) / MiB))
    assert.ok(Math.max(...growth) < GROWTH_MAX / MiB, `grew by ${growth.join(', ')} MiB`)
  })
}
