import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig, digList } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { say } from './metered-socket.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

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

for (const path of ['/v1/realtime', '/v1/realtime/translations'])
  test(`a model whose name in the query of ${path} can be read in two ways is held for by the model that upstream shows`, async () => {
    const heldUsd: number[] = []
    for (const query of ['model=gpt-realtime', 'model=gpt-realtime-mini&Model=gpt-realtime']) {
      const { id, key } = await upstream.gateway.createKey('socket', { monthly_budget_usd: 50 })
      const socket = await upstream.open(`${path}?${query}`, key)
      await socket.takeType('session.created')
      // Until upstream shows the model, all that is left is held.
      let usd = 0
      await until('one is held for', async () => {
        usd = await upstream.heldUsd(id)
        return usd > 0 && usd < 50
      })
      heldUsd.push(usd)
      socket.ws.terminate()
    }
    assert.equal(heldUsd[0], heldUsd[1])
  })

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

test('a model that a session is asked to go by holds for no less than the one that it may stay with', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  const heldUsd = await upstream.heldUsd(id)
  upstream.answer = (_message, tell) => tell({ type: 'error', error: { message: 'It stays as it is.' } })
  socket.send({ type: 'session.update', session: { model: 'gpt-5-nano' } })
  await socket.takeType('error')
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.close()
  await socket.closed()
})

test('an update of which a part is refused changes nothing of what is held', async () => {
  const { id, socket } = await open({
    monthly_budget_usd: 50,
    allowed_models: ['gpt-realtime', 'gpt-realtime-mini', 'gpt-5-nano'],
  })
  const heldUsd = await upstream.heldUsd(id)
  for (const model of ['gpt-5-nano', 'gpt-realtime-mini']) {
    const session = { model, audio: { input: { transcription: { model: 'whisper-1' } } } }
    socket.send({ type: 'session.update', session })
    assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  }
  assert.deepEqual(upstream.reached, [])
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.close()
  await socket.closed()
})

for (const shown of [null, { model: 'whisper-1' }]) {
  test(`a model that the key may not use is refused, also where upstream shows ${shown?.model ?? 'none'} while it is judged`, async () => {
    upstream.answer = (_message, tell) =>
      tell({ type: 'session.updated', session: { audio: { input: { transcription: shown } } } })
    const plain = Array.from({ length: shown === null ? 8 : 1 }, () => ({ instructions: 'Be brief.' }))
    const audio = { input: { transcription: { model: 'gpt-4o-transcribe' } } }
    for (let i = 0; i < 20; i++) {
      const { socket } = await open({ allowed_models: ['gpt-realtime', 'whisper-1'] })
      for (const session of [...plain, { audio }]) socket.send({ type: 'session.update', session })
      const codes: unknown[] = []
      await socket.takeUntil((event) => codes.push(dig(event, 'error.code')) > plain.length)
      assert.deepEqual(
        codes.filter((code) => code !== undefined),
        ['model_not_allowed'],
      )
      assert.ok(upstream.reached.every((message) => dig(message, 'session.audio') === undefined))
      socket.ws.terminate()
    }
  })
}

test('what a session goes by only while it waits for a hold is not held for any longer', async () => {
  const { id, key, socket } = await open({ monthly_budget_usd: 50 })
  const heldUsd = await upstream.heldUsd(id)
  const other = await upstream.open(PATH, key)
  await other.takeType('session.created')
  assert.equal(await upstream.heldUsd(id), 2 * heldUsd)
  await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 1 })
  let show = (_transcription: object | null): void => undefined
  upstream.answer = (_message, tell) => {
    show = (transcription) => {
      const session = { ...sessionOf('gpt-realtime'), audio: { input: { transcription } } }
      tell({ type: 'session.updated', session })
    }
    show({ model: 'whisper-1' })
  }
  socket.send({ type: 'begin' })
  await socket.takeType('session.updated')
  await until('it waits', async () => {
    const waiting = await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?state=waiting`)
    return digList(waiting, 'data').length === 1
  })
  show(null)
  await socket.takeType('session.updated')
  // This message passes when the session waits for no hold any more.
  upstream.answer = (_message, tell) => tell({ type: 'heard' })
  socket.send({ type: 'hear' })
  other.ws.close()
  await socket.takeType('heard')
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.close()
  await socket.closed()
})

/** Usage of 2,000 tokens of sound heard and 1,000 said: 0.128 dollars with gpt-realtime, and less with mini. */
const USED = usageOf(2_000, 1_000)

/** Has upstream answer `response.create` by beginning a response, and `finish` by ending it. */
function playResponses(...usages: readonly unknown[]): void {
  let begun = 0
  upstream.answer = (message, tell) => {
    const type = dig(message, 'type')
    if (type === 'response.create') begun += 1
    const id = `resp_${begun}`
    if (type === 'session.update')
      tell({ type: 'session.updated', session: sessionOf(String(dig(message, 'session.model'))) })
    if (type === 'response.create')
      tell({ type: 'response.created', response: { id, status: 'in_progress', usage: null } })
    if (type === 'say')
      tell({ type: 'response.output_audio.delta', response_id: id, delta: 'AAAA'.repeat(12_000) })
    if (type === 'finish')
      tell({ type: 'response.done', response: { id, status: 'completed', usage: usages[begun - 1] } })
  }
}

async function costOf(id: string): Promise<readonly [string, number]> {
  await until('it is settled', async () => (await upstream.costs(id)).length === 1)
  const [cost] = await upstream.costs(id)
  assert.ok(cost)
  return cost
}

test('a response is paid for at the model by which it began', async () => {
  const { id, socket } = await open()
  playResponses(USED)
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.send({ type: 'session.update', session: { model: 'gpt-realtime-mini' } })
  await socket.takeType('session.updated')
  socket.send({ type: 'finish' })
  assert.deepEqual(await costOf(id), ['gpt-realtime', 0.128])
  socket.ws.close()
  await socket.closed()
})

test('a response that names a dearer model than its session has is paid for at that', async () => {
  const { id, socket } = await open()
  playResponses(USED)
  socket.send({ type: 'session.update', session: { model: 'gpt-realtime-mini' } })
  await socket.takeType('session.updated')
  socket.send({ type: 'response.create', response: { model: 'gpt-realtime' } })
  socket.send({ type: 'finish' })
  assert.deepEqual(await costOf(id), ['gpt-realtime', 0.128])
  socket.ws.close()
  await socket.closed()
})

for (const usage of [{}, [], 'none', { input_tokens: '2000', output_tokens: '1000' }, { output_tokens: 1 }])
  test(`a response with the usage ${JSON.stringify(usage)} is paid for by what passed`, async () => {
    const { id, socket } = await open()
    playResponses(usage)
    socket.send({ type: 'response.create' })
    socket.send({ type: 'say' })
    socket.send({ type: 'finish' })
    const [, usd] = await costOf(id)
    // Three quarters of a second, at 20 tokens a second and 64 dollars a million.
    assert.ok(usd > 0.0009, `${usd} dollars`)
    socket.ws.close()
    await socket.closed()
  })

test('a small response beside the conversation does not make it shorter for one that is cut', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open()
  playResponses(USED, usageOf(5, 1))
  for (let i = 0; i < 2; i++) {
    socket.send({ type: 'response.create' })
    socket.send({ type: 'finish' })
    await socket.takeType('response.done')
  }
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await until('it is settled', async () => (await upstream.costs(id)).length === 3)
  const [, , cut] = await upstream.costs(id)
  // The response that is cut reads the speech of the first one again: 1,000 tokens at 32 dollars a million.
  assert.ok((cut?.[1] ?? 0) > 0.032)
})

test('what responses beside the conversation had for input is not read by one that is cut', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  let begun = 0
  upstream.answer = (message, tell) => {
    if (dig(message, 'type') !== 'response.create') return
    const response = { id: `resp_${begun++}`, status: 'completed', usage: usageOf(1, 0) }
    tell({ type: 'response.created', response: { id: response.id } })
    if (dig(message, 'response.conversation') === 'none') tell({ type: 'response.done', response })
  }
  const text = 'word '.repeat(20_000)
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }]
  for (let i = 0; i < 3; i++) {
    socket.send({ type: 'response.create', response: { conversation: 'none', input } })
    await socket.takeType('response.done')
  }
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await until('all are paid for', async () => (await upstream.costs(id)).length === 4)
  const [, usd = 1] = (await upstream.costs(id)).at(-1) ?? []
  assert.ok(usd < 0.001, `${usd} dollars`)
})

test('a response beside the conversation that is cut has read its own input', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  upstream.answer = (_message, tell) => tell({ type: 'response.created', response: { id: 'resp_beside' } })
  const content = [{ type: 'input_text', text: 'word '.repeat(20_000) }]
  const input = [{ type: 'message', role: 'user', content }]
  socket.send({ type: 'response.create', response: { conversation: 'none', input } })
  await socket.takeType('response.created')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  const [, usd = 0] = (await upstream.costs(id))[0] ?? []
  assert.ok(usd > 0.07, `${usd} dollars`)
})

test('words that are many are counted as words, also where a response beside them comes first', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open()
  playResponses(usageOf(5, 1))
  socket.send(say('word '.repeat(40_000)))
  socket.send({ type: 'response.create', response: { conversation: 'none' } })
  socket.send({ type: 'finish' })
  await socket.takeType('response.done')
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await until('it is settled', async () => (await upstream.costs(id)).length === 2)
  const [, cut] = await upstream.costs(id)
  // The window, which has 32,000 tokens, at 4 dollars a million.
  assert.ok(Math.abs((cut?.[1] ?? 0) - 0.128) < 0.001, `${cut?.[1]} dollars`)
})

test('what came for a response that is cancelled before it was read is left to the next one', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open()
  playResponses(usageOf(0, 0))
  socket.send(say('word '.repeat(40_000)))
  socket.send({ type: 'response.create' })
  socket.send({ type: 'finish' })
  await socket.takeType('response.done')
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await until('it is settled', async () => (await upstream.costs(id)).length === 2)
  const [cancelled, cut] = await upstream.costs(id)
  assert.equal(cancelled?.[1], 0)
  // The window, which has 32,000 tokens, at 4 dollars a million.
  assert.ok(Math.abs((cut?.[1] ?? 0) - 0.128) < 0.001, `${cut?.[1]} dollars`)
})

test('a hold that is given back is only for what may begin by itself where it is enough for that', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 50 })
  const heldUsd = await upstream.heldUsd(id)
  playResponses(USED)
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  upstream.answer = (_message, tell) => tell({ type: 'error', error: { event_id: 'small' } })
  const small = { max_output_tokens: 1, conversation: 'none' }
  socket.send({ type: 'response.create', event_id: 'small', response: small })
  await socket.takeType('error')
  await until('there is one for each', async () => (await upstream.heldUsd(id)) === 2 * heldUsd)
  socket.ws.terminate()
})

for (const leave of ['terminate', 'close'] as const)
  for (const eventId of [undefined, 'mine'])
    test(`a response that an error seemed to be about is paid for, though the client has left (${leave}, ${eventId})`, async () => {
      const { id, socket } = await open()
      playResponses(USED)
      const { answer } = upstream
      let begin = (): void => undefined
      upstream.answer = (message, tell) => {
        if (dig(message, 'type') === 'bogus') tell({ type: 'error', error: { event_id: null } })
        else
          begin = () => {
            answer(message, tell)
            answer({ type: 'finish' }, tell)
          }
      }
      socket.send({ type: 'response.create', event_id: eventId })
      socket.send({ type: 'bogus' })
      await socket.takeType('error')
      socket.ws[leave]()
      await socket.closed()
      begin()
      assert.deepEqual(await costOf(id), ['gpt-realtime', 0.128])
    })
