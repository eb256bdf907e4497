import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clockAt } from '../limits/clock-at.ts'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { endedTurns, nothingHeld, type SocketPair, startSocketPair } from './metered-socket.ts'

const PATH = '/v1/realtime?model=gpt-realtime'

const clock = clockAt(new Date().toISOString())
let pair: SocketPair
before(async () => {
  pair = await startSocketPair({ clock })
})
after(() => pair.close())

test('an idle session is closed with 1008 when its key has expired, and what it held is given back', async () => {
  const expires_at = new Date(clock.nowMs() + 60_000).toISOString()
  const { id, key } = await pair.gateway.createKey('short', { expires_at, monthly_budget_usd: 50 })
  const socket = await pair.open(PATH, { key })
  await socket.takeType('session.created')
  assert.ok((await pair.held(id)) > 0)
  clock.set(expires_at)
  assert.equal((await socket.closed()).code, 1008)
  await nothingHeld(pair, id)
  assert.deepEqual(await pair.turns(id), [])
})

test('a key that logs has the bodies of its turns kept: what asked for them, and their events', async () => {
  const { id, key } = await pair.gateway.createKey('logged', { log_requests: true })
  const socket = await pair.open(PATH, { key })
  await socket.takeType('session.created')
  const asked = { type: 'response.create', response: { output_modalities: ['text'], instructions: 'Count.' } }
  socket.send(asked)
  await socket.takeType('response.done')
  const [turn] = await endedTurns(pair, id, 1)
  let bodies: unknown
  await until('its bodies are kept', async () => {
    bodies = await pair.gateway
      .manage('GET', `/gateway/v1/requests/${dig(turn, 'id')}/bodies`)
      .catch(() => null)
    return bodies !== null
  })
  assert.deepEqual(JSON.parse(String(dig(bodies, 'request.content'))), asked)
  const events = String(dig(bodies, 'response.content'))
  const kept = [...events.matchAll(/^data: (.*)$/gm)].map(([, event]): unknown => JSON.parse(event ?? ''))
  const own = socket.received.filter(
    (event) => dig(event, 'response.id') !== undefined || dig(event, 'response_id') !== undefined,
  )
  assert.deepEqual(kept, own)
  socket.ws.close()
  await socket.closed()
})
