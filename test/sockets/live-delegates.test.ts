import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, beforeEach, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

const PATH = '/v1/live/sessions'
const MODEL = 'gpt-5.5-pro'
const prices = writeHourlyPrices()
const delegation = { type: 'responses', responses: { model: MODEL } }
const session = { id: 'live_1', model: 'gpt-live-1', delegation }
const usdFor = (seconds: number) => Math.round((seconds * LIVE_PER_HOUR * 1e9) / 3_600) / 1e9
let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.started', session }, { env: { TOLLGATE_PRICES: prices } })
})
after(async () => {
  await upstream.close()
  rmSync(prices)
})

/** Upstream sends the events that a test puts into its message. */
beforeEach(() => {
  upstream.reached.length = 0
  upstream.answer = (message, say) => {
    for (const event of (dig(message, 'say') as readonly object[] | undefined) ?? []) say(event)
  }
})

const nested = (event: object) => ({ type: 'response.event', event })
const began = (id: string) =>
  nested({ type: 'response.created', response: { id, model: MODEL, status: 'in_progress', output: [] } })
const ended = (id: string, input: number, fields: object = {}) => {
  const usage = { input_tokens: input, output_tokens: 0, total_tokens: input }
  const response = { id, model: MODEL, status: 'completed', output: [], usage, ...fields }
  return nested({ type: 'response.completed', response })
}

async function open(monthlyUsd: number, path = PATH) {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: monthlyUsd })
  const socket = await upstream.open(path, key)
  await socket.takeType('session.started')
  /** Has upstream send these events, and waits until the last has come. */
  const say = async (...events: readonly object[]) => {
    socket.send({ type: 'say', say: [...events, { type: 'said' }] })
    await socket.takeType('said')
  }
  return { id, key, socket, say }
}

/** Waits until the hold for a response of a delegate is placed. */
async function heldForOne(id: string): Promise<void> {
  await until('one is held for', async () => {
    const usd = await upstream.heldUsd(id)
    return usd > 10 * usdFor(60) && usd < 1_000
  })
}

async function nothingHeld(id: string): Promise<void> {
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
}

test('a minute that is over while another model works is paid for, and the session goes on', async () => {
  const { id, socket, say } = await open(50)
  await heldForOne(id)
  await say(began('resp_minute'), { type: 'session.usage.updated', usage: { seconds: 61 } })
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === usdFor(61))
  await say({ type: 'session.usage.updated', usage: { seconds: 122 } })
  await until('so is the next', async () => (await upstream.spentUsd(id)) === usdFor(122))
  await say(ended('resp_minute', 1_000))
  await until('it is paid for', async () => (await upstream.costs(id)).length === 3)
  await heldForOne(id)
  await say({ type: 'session.usage.updated', usage: { seconds: 183 } })
  await until('the last is paid for', async () => (await upstream.costs(id)).length === 4)
  const costs = (await upstream.costs(id)).map(([, usd]) => usd)
  assert.deepEqual(costs.sort(), [0.03, usdFor(61), usdFor(61), usdFor(61)])
  socket.ws.terminate()
  await nothingHeld(id)
})

const unbegun: readonly (readonly [what: string, answer: object])[] = [
  ['upstream does not answer', { type: 'heard' }],
  ['upstream answers with an error that names no message', { type: 'error', error: { message: 'No.' } }],
]

for (const [what, answer] of unbegun)
  test(`a response that ${what} keeps the socket of a revoked key open only for a while`, async (t) => {
    const { id, socket } = await open(50)
    await heldForOne(id)
    upstream.answer = (_message, say) => say(answer)
    const pass = stopTime(t)
    socket.send({ type: 'response.create', event_id: 'mine' })
    await socket.takeType(String(dig(answer, 'type')))
    await upstream.gateway.revokeKey(id)
    socket.send({ type: 'response.create', event_id: 'another' })
    await socket.takeType('error')
    pass(limits.silentTurnMs)
    assert.equal((await socket.closed()).code, 1008)
    pass(limits.readOnMs)
    await nothingHeld(id)
    assert.equal(await upstream.spentUsd(id), 0)
  })

/** When this later request is answered, the gateway has seen that the client is gone. */
const leftBehind = (id: string) => upstream.heldUsd(id)

test('a response that begins after an error about something else is paid for, though the client has left', async () => {
  const { id, socket } = await open(50)
  await heldForOne(id)
  let tell = (_event: object): void => undefined
  upstream.answer = (message, say) => {
    tell = say
    if (dig(message, 'type') === 'bogus') say({ type: 'error', error: { message: 'There is no such type.' } })
  }
  socket.send({ type: 'response.create', event_id: 'mine' })
  socket.send({ type: 'bogus' })
  await socket.takeType('error')
  socket.ws.terminate()
  await leftBehind(id)
  tell(began('resp_error'))
  tell(ended('resp_error', 1_000))
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [[MODEL, 0.03]])
  await nothingHeld(id)
})

async function askToDecide() {
  const opened = await open(1_000)
  await heldForOne(opened.id)
  let decided = (): void => undefined
  upstream.answer = (_message, say) => {
    const usage = { input_tokens: 1_000, output_tokens: 0, total_tokens: 1_000 }
    const event = { type: 'decision.completed', decision: { model: MODEL, usage } }
    decided = () => say({ type: 'decision.event', event })
    say({ type: 'heard' })
  }
  opened.socket.send({ type: 'decision.create' })
  await opened.socket.takeType('heard')
  return { ...opened, decided: () => decided() }
}

test('a decision that takes long keeps its hold', async (t) => {
  const pass = stopTime(t)
  const { id, socket, decided } = await askToDecide()
  const heldUsd = await upstream.heldUsd(id)
  pass(limits.silentTurnMs)
  assert.equal(await upstream.heldUsd(id), heldUsd)
  decided()
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [[MODEL, 0.03]])
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a decision that takes long and is made when the client has left is paid for', async (t) => {
  const pass = stopTime(t)
  const { id, socket, decided } = await askToDecide()
  pass(limits.silentTurnMs)
  socket.ws.terminate()
  await leftBehind(id)
  decided()
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [[MODEL, 0.03]])
  await nothingHeld(id)
})

test('a response that begins long after it was asked for is paid for', async (t) => {
  const { id, socket, say } = await open(1_000)
  await heldForOne(id)
  const answer = upstream.answer
  upstream.answer = (_message, tell) => tell({ type: 'heard' })
  const pass = stopTime(t)
  socket.send({ type: 'response.create', event_id: 'mine' })
  await socket.takeType('heard')
  pass(limits.silentTurnMs)
  t.mock.timers.reset()
  await until('it is given up', async () => (await upstream.costs(id)).length === 1)
  upstream.answer = answer
  await say(began('resp_late'), ended('resp_late', 1_000))
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === 0.03)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('what another model does when the client leaves is read to its end', async (t) => {
  const { id, socket, say } = await open(1_000)
  await heldForOne(id)
  let end = (): void => undefined
  const { answer } = upstream
  upstream.answer = (message, tell) => {
    answer(message, tell)
    end = () => tell(ended('resp_left', 1_000))
  }
  await say(began('resp_left'))
  const pass = stopTime(t)
  socket.ws.close(1000)
  await socket.closed()
  pass(limits.readOnMs)
  end()
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === 0.03)
  await nothingHeld(id)
})

test('what another model does and does not end is taken to have read what the one before it had', async (t) => {
  const { id, socket, say } = await open(1_000)
  await heldForOne(id)
  await say(began('resp_before'), ended('resp_before', 10_000))
  await say({ type: 'session.input_transcript.delta', delta: 'word '.repeat(8_000) }, began('resp_cut'))
  const pass = stopTime(t)
  socket.ws.close(1000)
  await socket.closed()
  pass(limits.finishMs)
  await until('both are paid for', async () => (await upstream.costs(id)).length === 2)
  const [, cut] = await upstream.costs(id)
  // 20,000 tokens at 30 dollars a million, and a little for reasoning that may have happened.
  assert.ok(cut !== undefined && cut[1] > 0.6 && cut[1] < 1.2, String(cut))
  await nothingHeld(id)
})

const searched = (id: string, fields: object = {}) => {
  const item = { type: 'web_search_call', id, status: 'completed', action: { type: 'search', query: 'x' } }
  return { ...nested({ type: 'response.output_item.done', output_index: 0, item }), ...fields }
}

test('tools that another model has used are paid for, though its last event lists none', async () => {
  const { id, socket, say } = await open(1_000)
  await say(began('resp_tools'), searched('ws_1'), searched('ws_2'), ended('resp_tools', 1_000))
  // The searches are two at a cent each.
  await until('it is paid for', async () => (await upstream.spentUsd(id)) > 0)
  assert.equal(await upstream.spentUsd(id), 0.05)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('of two models that work at once each pays for its own tools', async () => {
  const { id, socket, say } = await open(1_000)
  const [one, other] = [{ delegation_id: 'del_1' }, { delegation_id: 'del_2' }]
  await say(
    { ...began('resp_one'), ...one },
    { ...began('resp_other'), ...other },
    ...['ws_1', 'ws_2', 'ws_3'].map((item) => searched(item, one)),
    searched('ws_4', other),
    ended('resp_one', 1_000),
    ended('resp_other', 1_000),
  )
  await until('both are paid for', async () => (await upstream.costs(id)).length === 2)
  assert.deepEqual((await upstream.costs(id)).map(([, usd]) => usd).sort(), [0.04, 0.06])
  await say(
    began('resp_5'),
    began('resp_6'),
    searched('ws_5'),
    ended('resp_5', 1_000),
    ended('resp_6', 1_000),
  )
  await until('both are paid for', async () => (await upstream.costs(id)).length === 4)
  assert.equal(await upstream.spentUsd(id), 0.17)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a socket that looks on has no models work that its key may not pay for', async () => {
  const { id, key, socket } = await open(1_000)
  await heldForOne(id)
  const other = await upstream.open(`${PATH}/live_1/attach`, key)
  await other.takeType('session.started')
  upstream.answer = (_message, say) => say({ type: 'session.updated', session })
  const update = (model: string) => ({
    type: 'session.update',
    session: { delegation: { type: 'responses', responses: { model } } },
  })
  other.send(update('gpt-6-luna'))
  await other.takeType('session.updated')
  other.send(update('gpt-without-a-price'))
  assert.equal(dig(await other.takeType('error'), 'error.code'), 'model_not_priced')
  assert.equal(upstream.reached.length, 1)
  for (const each of [socket, other]) each.ws.terminate()
  await nothingHeld(id)
})

test('what others may do at a dearer tier is held for at that', async () => {
  const responses = { model: 'gpt-5.5' }
  const greeting = {
    type: 'session.started',
    session: { ...session, delegation: { ...delegation, responses } },
  }
  const played = await playUpstream(greeting, { env: { TOLLGATE_PRICES: prices } })
  const { id, key } = await played.gateway.createKey('live', { monthly_budget_usd: 1_000 })
  const socket = await played.open(PATH, key)
  await socket.takeType('session.started')
  let heldUsd = 0
  await until('one is held for', async () => {
    heldUsd = (await played.heldUsd(id)) - usdFor(60)
    return heldUsd > 1 && heldUsd < 500
  })
  played.answer = (_message, say) => say({ ...greeting, type: 'session.updated' })
  const dearer = { type: 'responses', responses: { service_tier: 'priority' } }
  socket.send({ type: 'session.update', session: { delegation: dearer } })
  await socket.takeType('session.updated')
  assert.ok((await played.heldUsd(id)) > 1.5 * heldUsd)
  await played.close()
})

test('a session has so many models work that all of them can be priced', async () => {
  const { id, key } = await upstream.gateway.createKey('live')
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.started')
  for (let i = 0; i < limits.modelsPerSessionMax; i++) {
    const responses = { model: `gpt-5.5-${i}`, service_tier: `tier-${i}` }
    socket.send({ type: 'session.update', session: { delegation: { type: 'responses', responses } } })
  }
  assert.equal(dig(await socket.takeType('error'), 'error.param'), 'session.delegation')
  assert.equal(upstream.reached.length, limits.modelsPerSessionMax - 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('minutes that nothing is held for, while another model works, end with the cap', async () => {
  const { id, socket, say } = await open(3 * usdFor(60), `${PATH}/live_capped/attach`)
  await heldForOne(id)
  const { answer } = upstream
  let end = (): void => undefined
  upstream.answer = (message, tell) => {
    answer(message, tell)
    end = () => tell(ended('resp_long', 1_000))
  }
  await say(began('resp_long'))
  const closed = socket.closed()
  for (const seconds of [61, 122]) await say({ type: 'session.usage.updated', usage: { seconds } })
  socket.send({ type: 'say', say: [{ type: 'session.usage.updated', usage: { seconds: 183 } }] })
  assert.equal((await closed).code, 1008)
  end()
  await nothingHeld(id)
  assert.equal((await upstream.costs(id)).length, 4)
})

test('work of another model that ends with an error is over when nothing more is heard of it', async (t) => {
  const { id, socket, say } = await open(1_000)
  await heldForOne(id)
  const pass = stopTime(t)
  const error = nested({ type: 'error', error: { message: 'It broke.' } })
  await say(
    began('resp_broken'),
    error,
    nested({ type: 'response.in_progress', response: { id: 'resp_broken' } }),
  )
  pass(limits.silentTurnMs)
  assert.deepEqual(await upstream.costs(id), [])
  await say(error)
  pass(limits.silentTurnMs)
  await until('it is over', async () => (await upstream.costs(id)).length === 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a session goes on to be paid for where its other socket is the first to see what was asked for', async () => {
  const path = `${PATH}/live_seen/attach`
  const { id, key, socket, say } = await open(50, path)
  await heldForOne(id)
  const other = await upstream.open(path, key)
  await other.takeType('session.started')
  socket.send({ type: 'response.create' })
  await say({ type: 'session.usage.updated', usage: { seconds: 61 } })
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === usdFor(61))
  const sayToOther = async (event: object) => {
    other.send({ type: 'say', say: [event, { type: 'said' }] })
    await other.takeType('said')
  }
  await sayToOther(began('resp_seen'))
  await say(began('resp_seen'), { type: 'session.usage.updated', usage: { seconds: 122 } })
  await until('so is the next', async () => (await upstream.spentUsd(id)) === usdFor(122))
  await sayToOther(ended('resp_seen', 1_000))
  await until('it is paid for', async () => (await upstream.costs(id)).length === 3)
  await heldForOne(id)
  await say({ type: 'session.usage.updated', usage: { seconds: 183 } })
  await until('the last is paid for', async () => (await upstream.costs(id)).length === 4)
  for (const each of [socket, other]) each.ws.terminate()
  await nothingHeld(id)
})

test('work of another model whose events do not name it is paid for each time', async () => {
  const { id, socket, say } = await open(1_000)
  await heldForOne(id)
  const usage = { input_tokens: 1_000, output_tokens: 0, total_tokens: 1_000 }
  const response = { model: MODEL, output: [] }
  for (let i = 1; i <= 2; i++) {
    await say(nested({ type: 'response.created', response }))
    await say(nested({ type: 'response.completed', response: { ...response, status: 'completed', usage } }))
    await until('it is paid for', async () => (await upstream.costs(id)).length === i)
  }
  assert.deepEqual(await upstream.costs(id), Array(2).fill([MODEL, 0.03]))
  socket.ws.terminate()
  await nothingHeld(id)
})
