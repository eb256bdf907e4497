import assert from 'node:assert/strict'
import { dig, digList } from '../simulator/dig.ts'
import { refusedSocket } from '../simulator/socket-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { words } from '../support/words.ts'
import { playUpstream } from './played-upstream.ts'

const PATHS = words(`
  /v1/live/sessions /v1/live/sessions/live_1/attach
  /v1/realtime/translations?model=gpt-realtime-translate /v1/realtime?call_id=rtc_1
  /v1/realtime?intent=transcription /v1/realtime?model=gpt-realtime&call_id=rtc_1 /v1/realtime
`)

const upstream = await playUpstream({ type: 'session.created' })
closeAfter(upstream)

test('an unmetered socket is piped and recorded as one unpriced call', async () => {
  const { id, key } = await upstream.gateway.createKey('free')
  upstream.answer = (message, say) => say({ type: 'heard', message })
  for (const [at, path] of PATHS.entries()) {
    const socket = await upstream.open(path, key)
    await socket.takeType('session.created')
    socket.send({ type: 'response.create', no: at })
    assert.equal(dig(await socket.takeType('heard'), 'message.no'), at)
    socket.ws.close()
    await socket.closed()
  }
  const calls = digList(await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`), 'data')
  assert.deepEqual(
    calls.map((call) => [
      dig(call, 'status'),
      dig(call, 'unpriced'),
      dig(call, 'cost_usd'),
      dig(call, 'state'),
    ]),
    PATHS.map(() => [101, true, 0, 'settled']),
  )
  const usage = await upstream.gateway.manage('GET', `/v1/usage?key=${id}`)
  assert.equal(JSON.stringify(usage).includes(`"requests":${PATHS.length}`), true, JSON.stringify(usage))
})

test('an unmetered socket is refused to limited keys before any model check, and does not reach upstream', async () => {
  upstream.reached.length = 0
  for (const limit of [{ monthly_budget_usd: 50 }, { allowed_models: ['gpt-realtime'] }]) {
    const { key } = await upstream.gateway.createKey('limited', limit)
    for (const path of PATHS) {
      const headers = { authorization: `Bearer ${key}` }
      const { status, body } = await refusedSocket(upstream.gateway, path, headers)
      assert.deepEqual([status, dig(body, 'error.code')], [404, 'endpoint_not_metered'], path)
    }
  }
  assert.deepEqual(upstream.reached, [])
})

test('an unmetered socket closes with 1008 when its key is revoked', async () => {
  const { id, key } = await upstream.gateway.createKey('revoked')
  const socket = await upstream.open('/v1/live/sessions', key)
  await socket.takeType('session.created')
  await upstream.gateway.revokeKey(id)
  assert.equal((await socket.closed()).code, 1008)
})
