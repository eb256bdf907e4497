import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { startPair } from '../support/pair.ts'
import { openDatabaseReader } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { sized } from '../support/wire-bytes.ts'

const pair = await startPair()
closeAfter(pair)

const LONG = 'x'.repeat(40_000)
/** The limit of the JSON columns: rating and usage of a call. */
const JSON_CHARS_MAX = 4_096

const reply = JSON.stringify({
  id: LONG,
  model: LONG,
  stop_reason: LONG,
  choices: [{ index: 0, finish_reason: LONG, message: { role: 'assistant', content: 'Hi' } }],
  service_tier: LONG,
  usage: {
    input_tokens: 1,
    output_tokens: 1,
    prompt_tokens: 1,
    completion_tokens: 1,
    [LONG]: 1,
    service_tier: LONG,
  },
})

for (const surface of surfaces) {
  test(`${surface.name}: overlong values of client and upstream leave a small record`, async () => {
    const body = JSON.stringify({
      model: LONG,
      max_tokens: 1,
      service_tier: LONG,
      speed: LONG,
      inference_geo: LONG,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    pair.upstream.answer(() => [
      {
        send: sized(
          'HTTP/1.1 200 OK',
          ['Content-Type: application/json', `request-id: ${LONG}`, `X-Long: ${LONG.slice(0, 10_000)}`],
          reply,
        ),
      },
    ])
    const agent = [`User-Agent: ${LONG}`, `X-Forwarded-For: ${LONG.slice(0, 10_000)}`]
    const tools = [
      { type: 'image_generation', model: LONG },
      { type: LONG, name: LONG },
    ]
    const response = JSON.stringify({ ...JSON.parse(body), tools, input: 'Hi' })
    for (const request of [
      pair.request(surface, { target: '/v1/responses', lines: agent, body: response }),
      pair.request(surface, { lines: agent, body }),
      pair.request(surface, { method: 'GET', target: `/v1/${LONG.slice(0, 8_000)}`, lines: [] }),
      pair.request(surface, { method: 'GET', target: `/v1/models?${LONG}`, lines: [] }),
    ]) {
      const answer = await pair.exchange(request)
      assert.equal(answer.status, 200, answer.body.toString().slice(0, 500))
    }
  })
}

test('no recorded text of those calls exceeds its limit', async () => {
  const database = openDatabaseReader(pair.gateway)
  const rows = await database.read('SELECT * FROM call')
  await database.close()
  assert.ok(rows.length >= 6)
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      const most = column === 'usage' || column === 'rating' ? JSON_CHARS_MAX : limits.recordedCharsMax
      const kept = typeof value === 'string' ? value.length : 0
      assert.ok(kept <= most, `${column} has ${kept} characters`)
    }
  }
  // The long texts were stored, truncated.
  const longest = (column: string) => Math.max(...rows.map((row) => String(row[column] ?? '').length))
  assert.deepEqual(['path', 'user_agent'].map(longest), [limits.recordedCharsMax, limits.recordedCharsMax])
})
