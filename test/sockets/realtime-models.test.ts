import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { dig } from '../simulator/dig.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'

const PATH = '/v1/realtime?model=gpt-realtime'
const sessionOf = (model: string) => ({ id: 'sess_1', type: 'realtime', model, max_output_tokens: 'inf' })

let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.created', session: sessionOf('gpt-realtime') })
})
after(() => upstream.close())

async function open(fields: Record<string, unknown> = {}) {
  const { id, key } = await upstream.gateway.createKey('socket', fields)
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.created')
  upstream.reached.length = 0
  return { id, key, socket }
}

test('a message that begins a response is judged as one, whatever else it brings', async () => {
  const { socket } = await open({ monthly_budget_usd: 2 })
  socket.send({ type: 'response.create', event_id: 'odd', session: {} })
  const error = await socket.takeType('error')
  assert.equal(dig(error, 'error.code'), 'bad_request')
  assert.equal(dig(error, 'error.event_id') ?? null, null)
  assert.deepEqual(upstream.reached, [])
  socket.ws.close()
  await socket.closed()
})
