import assert from 'node:assert/strict'
import { dig, digList } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { began, done, GREETING, playUpstream, TRANSCRIBED, usageOf } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

const PATH = '/v1/realtime?model=gpt-realtime'
/** One response (32,000 × $32 + 4,096 × $64 per million) and 15 minutes at $1.02 per hour. */
const HOLD_USD = 1.541144

const upstream = await playUpstream(GREETING)
let say: (event: object) => void = () => undefined
closeAfter(upstream)

/** A socket whose upstream sends nothing by itself; `say` makes it send an event. */
async function open(limits: Readonly<Record<string, unknown>>) {
  const { id, key } = await upstream.gateway.createKey('socket', limits)
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.created')
  const heard = Promise.withResolvers<void>()
  upstream.answer = (_message, speak) => {
    say = speak
    heard.resolve()
  }
  socket.send({ type: 'input_audio_buffer.clear' })
  await heard.promise
  upstream.answer = () => undefined
  return { id, socket }
}

async function recorded(id: string): Promise<string[]> {
  const calls = digList(await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`), 'data')
  return calls.map((call) => `${dig(call, 'method')} ${dig(call, 'state')}`).sort()
}

async function leave(socket: SocketClient, id: string): Promise<void> {
  socket.ws.close()
  await socket.closed()
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
}

test('a hold is taken at the handshake, taken over by the next turn and renewed after it settles', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  assert.equal(await upstream.heldUsd(id), HOLD_USD)
  assert.deepEqual(await recorded(id), ['GET settled'], 'a standing hold has no record')
  say(began('resp_1'))
  await socket.takeType('response.created')
  assert.equal(await upstream.heldUsd(id), HOLD_USD)
  say(done('resp_1'))
  await until('the turn is billed', async () => (await upstream.costs(id)).length === 1)
  await until('the hold is renewed', async () => (await upstream.heldUsd(id)) === HOLD_USD)
  socket.send({ type: 'response.create' })
  await until('the request has reached upstream', async () => upstream.reached.length > 1)
  assert.equal(await upstream.heldUsd(id), HOLD_USD)
  say(began('resp_2'))
  say(done('resp_2'))
  await until('both are billed', async () => (await upstream.costs(id)).length === 2)
  await leave(socket, id)
  assert.deepEqual(await upstream.costs(id), Array(2).fill(['gpt-realtime', 0.128]))
  assert.deepEqual(await recorded(id), ['GET settled', 'WS settled', 'WS settled'])
})

test('a session with transcription near its cap never waits for its own hold', async () => {
  // Each turn and transcript leaves part of a cap smaller than two holds.
  const { id, socket } = await open({ monthly_budget_usd: 2 })
  for (let i = 1; i <= 3; i++) {
    say({ type: 'input_audio_buffer.committed', item_id: `item_${i}` })
    say({ type: TRANSCRIBED, item_id: `item_${i}`, usage: { type: 'duration', seconds: 60 } })
    say(began(`resp_${i}`))
    say(done(`resp_${i}`))
    await socket.takeType('response.done')
    const before = upstream.reached.length
    socket.send({ type: 'input_audio_buffer.clear' })
    await until('the next message passes', async () => upstream.reached.length > before)
  }
  await until('all are billed', async () => (await upstream.costs(id)).length === 6)
  const costs = await upstream.costs(id)
  assert.equal(costs.filter(([model, usd]) => model === 'whisper-1' && usd === 0.006).length, 3)
  assert.equal(costs.filter(([model, usd]) => model === 'gpt-realtime' && usd === 0.128).length, 3)
  assert.ok(!socket.received.some((event) => dig(event, 'type') === 'error'))
  await leave(socket, id)
})

test('each transcript with usage is billed, also two parts of one item', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  const usage = { type: 'duration', seconds: 60 }
  say({ type: TRANSCRIBED, item_id: 'item_a' })
  for (let i = 0; i < 2; i++) say({ type: TRANSCRIBED, item_id: 'item_b', content_index: i, usage })
  await until('both are billed', async () => (await upstream.costs(id)).length === 2)
  await leave(socket, id)
  assert.deepEqual(await upstream.costs(id), Array(2).fill(['whisper-1', 0.006]))
})

test('a transcript is billed at the model configured when its audio was committed', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  const transcribeBy = (model: string) =>
    say({ type: 'session.updated', session: { audio: { input: { transcription: { model } } } } })
  transcribeBy('gpt-4o-transcribe')
  say({ type: 'input_audio_buffer.committed', item_id: 'item_c' })
  transcribeBy('whisper-1')
  const tokens = { input_tokens: 1_000, input_token_details: { audio_tokens: 1_000 }, output_tokens: 100 }
  say({ type: TRANSCRIBED, item_id: 'item_c', usage: { type: 'tokens', ...tokens } })
  await until('it is billed', async () => (await upstream.costs(id)).length === 1)
  await leave(socket, id)
  assert.deepEqual(await upstream.costs(id), [['gpt-4o-transcribe', 0.007]])
})

test('responses that upstream begins during another one exceed a cap by at most one', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 1.6 })
  let responses = 0
  upstream.answer = (message, speak) => {
    if (dig(message, 'type') === 'response.create') return speak(began('resp_long'))
    responses += 1
    speak(began(`resp_${responses}`))
    speak({
      ...done(`resp_${responses}`),
      response: { ...done(`resp_${responses}`).response, usage: usageOf(2_000, 8_000) },
    })
  }
  socket.send({ type: 'response.create', response: { conversation: 'none' } })
  await socket.takeType('response.created')
  for (let i = 0; i < 20; i++) {
    socket.send({ type: 'input_audio_buffer.commit' })
    await Promise.race([socket.takeType('response.done'), socket.closed()])
  }
  await socket.closed()
  assert.equal(responses, 3)
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
})

test('another session model is refused to limited keys and passes for others', async () => {
  const update = { type: 'session.update', event_id: 'change', session: { model: 'gpt-realtime-mini' } }
  for (const limits of [
    { monthly_budget_usd: 50 },
    { allowed_models: ['gpt-realtime', 'gpt-realtime-mini'] },
  ]) {
    const { id, socket } = await open(limits)
    upstream.reached.length = 0
    socket.send(update)
    const error = await socket.takeType('error')
    assert.equal(dig(error, 'error.code'), 'model_not_allowed')
    assert.equal(dig(error, 'error.event_id'), 'change')
    assert.deepEqual(upstream.reached, [])
    await leave(socket, id)
  }
  const { id, socket } = await open({})
  upstream.reached.length = 0
  socket.send(update)
  await until('the message has reached upstream', async () => upstream.reached.length === 1)
  await leave(socket, id)
})

test('several settlements that exceed a cap close the socket with one error and one record', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 0.5 })
  const usage = { type: 'duration', seconds: 6_000 }
  // Upstream is still read for the bill of this response, so the socket is not over at the first refusal.
  say(began('resp_open'))
  await socket.takeType('response.created')
  for (const item of ['a', 'b', 'c']) say({ type: TRANSCRIBED, item_id: item, usage })
  assert.equal((await socket.closed()).code, 1008)
  await until('all are billed', async () => (await upstream.costs(id)).length >= 3)
  const path = `/v1/keys/${id}/requests?state=refused&limit=100`
  const refused = async () => digList(await upstream.gateway.manage('GET', path), 'data')
  await until('the refusal is recorded', async () => (await refused()).length > 0)
  assert.deepEqual(
    (await refused()).map((call) => dig(call, 'code')),
    ['budget_exceeded'],
  )
  assert.equal(socket.received.filter((event) => dig(event, 'type') === 'error').length, 1)
})

test('a changed discount applies to the next turn on an open socket, whichever side begins it', async () => {
  const discount = (value: number | null) =>
    upstream.gateway.manage('PATCH', '/gateway/v1/accounts/default', { discount: value })
  const { id, socket } = await open({})
  upstream.answer = (message, answer) => {
    if (dig(message, 'type') !== 'response.create') return
    answer(began('resp_mine'))
    answer(done('resp_mine'))
  }
  try {
    await discount(0.5)
    socket.send({ type: 'response.create' })
    await until('the first is billed', async () => (await upstream.costs(id)).length === 1)
    await until('the hold is renewed', async () => (await upstream.heldUsd(id)) === HOLD_USD / 2)
    await discount(0.25)
    say(began('resp_theirs'))
    say(done('resp_theirs'))
    await until('the second is billed', async () => (await upstream.costs(id)).length === 2)
  } finally {
    await discount(null)
    upstream.answer = () => undefined
  }
  assert.deepEqual((await upstream.costs(id)).map(([, usd]) => usd).sort(), [0.064, 0.096])
  await leave(socket, id)
})

test('after all its sockets have closed, a key holds nothing', async () => {
  const { id, key } = await upstream.gateway.createKey('many')
  upstream.answer = (message, answer) => {
    if (dig(message, 'type') !== 'response.create') return
    const response = `resp_${upstream.reached.length}`
    answer(began(response))
    if (upstream.reached.length % 2 === 0) answer(done(response))
  }
  await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      const socket = await upstream.open(PATH, key)
      for (let sent = 0; sent < i % 4; sent++) socket.send({ type: 'response.create' })
      if (i % 3 === 0) await socket.takeType('session.created')
      if (i % 2 === 0) socket.ws.terminate()
      else socket.ws.close()
      await socket.closed()
    }),
  )
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  const path = `/v1/keys/${id}/requests?state=in_flight&limit=100`
  assert.deepEqual(digList(await upstream.gateway.manage('GET', path), 'data'), [])
})

test('a turn that takes over the hold counts as a request, and is checked against new limits', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50, requests_per_minute: 1 })
  let begun = 0
  upstream.answer = (_message, answer) => {
    begun += 1
    answer(began(`resp_rate_${begun}`))
    answer(done(`resp_rate_${begun}`))
  }
  const codes: unknown[] = []
  const create = async () => {
    const before = socket.received.length
    socket.send({ type: 'response.create' })
    const last = () =>
      socket.received
        .slice(before)
        .find((event) => ['error', 'response.done'].includes(String(dig(event, 'type'))))
    await until('the message is answered', async () => last() !== undefined)
    return dig(last(), 'error.code')
  }
  // At most one minute can end between two of them.
  for (let i = 0; i < 3; i++) codes.push(await create())
  assert.ok(codes.includes('rate_limit_exceeded'))
  const refused = codes.filter((code) => code !== undefined).length
  assert.equal(begun + refused, 3)
  await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, { requests_per_minute: null })
  await until('the hold is renewed', async () => (await upstream.heldUsd(id)) === HOLD_USD)
  for (const [limit, code] of [
    [{ allowed_models: ['gpt-6-luna'] }, 'model_not_allowed'],
    [{ allowed_models: null, monthly_budget_usd: 0 }, 'budget_exceeded'],
  ] as const) {
    await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, limit)
    assert.equal(await create(), code)
  }
  await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 50 })
  assert.equal(await create(), undefined)
  upstream.answer = () => undefined
  await leave(socket, id)
})

test('after an account is suspended, no turn begins on its open sockets', async (t) => {
  // The poll of suspended accounts must not come between the suspension and the refusal.
  stopTime(t, 'sockets/open-sockets')
  const own = await playUpstream(GREETING)
  t.after(() => own.close())
  const { key } = await own.gateway.createKey('socket')
  const socket = await own.open(PATH, key)
  await socket.takeType('session.created')
  await own.gateway.manage('POST', '/gateway/v1/accounts/default/suspend')
  let forwarded = 0
  own.answer = () => {
    forwarded += 1
  }
  socket.send({ type: 'response.create' })
  const refused = await socket.takeType('error')
  assert.equal(dig(refused, 'error.code'), 'account_suspended')
  assert.equal(forwarded, 0)
  socket.ws.close()
  await socket.closed()
})
