import assert from 'node:assert/strict'
import type { RequestEntry } from '../../simulator/answer-request.ts'
import { type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { untilCounted } from '../support/simulator-counts.ts'
import { test } from '../support/suite.ts'
import { anthropicHeaders, chatBody, exchange, messageBody, post, rawPost } from './wire-client.ts'

test('a deterministic simulator gives the same bytes for the same request, head included', async () => {
  const run = async () => {
    await using simulator = await started({ deterministic: true })
    const answers: string[] = []
    for (const body of [messageBody(), messageBody({ stream: true })]) {
      const request = rawPost('/v1/messages', body, ['anthropic-version: 2026-10-21'])
      answers.push(String(await exchange(simulator, request)))
    }
    answers.push(String(await exchange(simulator, rawPost('/v1/responses', { model: 'gpt-4o', input: 'x' }))))
    answers.push(String(await exchange(simulator, rawPost('/v1/nothing', {}))))
    for (const [path, body] of [
      ['/v1/images/generations', { prompt: 'x', stream: true }],
      ['/v1/audio/speech', { model: 'tts-1', voice: 'alloy', input: 'x', response_format: 'opus' }],
      ['/v1/responses', { model: 'gpt-4o', input: 'x', background: true }],
    ] as const) {
      answers.push((await exchange(simulator, rawPost(path, body))).toString('latin1'))
    }
    const requests = [{ custom_id: 'a', params: messageBody() }]
    const batch = rawPost('/v1/messages/batches', { requests }, ['anthropic-version: 2026-10-21'])
    answers.push(String(await exchange(simulator, batch)))
    return answers
  }
  const [first, second] = [await run(), await run()]
  assert.deepEqual(first, second)
  assert.equal(new Set(first).size, first.length)
})

test('without that, ids differ from one request to the next', async () => {
  await using simulator = await started({})
  const id = async () =>
    /"id":"([^"]+)"/.exec(await (await post(simulator, '/v1/chat/completions', chatBody())).text())
  assert.notEqual((await id())?.[1], (await id())?.[1])
})

test('in a deterministic simulator stream_options and multipart boundaries do not change ids', async () => {
  await using simulator = await started({ deterministic: true })
  const requestId = async (more: object) => {
    const response = await post(simulator, '/v1/chat/completions', chatBody({ stream: true, ...more }))
    await response.text()
    return response.headers.get('x-request-id')
  }
  assert.equal(await requestId({}), await requestId({ stream_options: { include_usage: true } }))
  assert.notEqual(await requestId({}), await requestId({ n: 2 }))
  const upload = async (content: string) => {
    const body = new FormData()
    body.set('purpose', 'user_data')
    body.set('file', new Blob([content]), 'a.txt')
    return await (await fetch(`${simulator.chatUrl}/files`, { method: 'POST', body })).text()
  }
  assert.equal(await upload('one'), await upload('one'))
  assert.notEqual(await upload('one'), await upload('two'))
})

test('every request is counted and shown to the observer as it arrived', async () => {
  const entries: RequestEntry[] = []
  await using simulator = await started({ chatKey: 'k', onRequest: (entry) => entries.push(entry) })
  const body = JSON.stringify(chatBody())
  await exchange(
    simulator,
    rawPost('/v1/chat/completions?a=%20b&&', body, ['Authorization: Bearer k', 'X-A: 1', 'x-a: 2']),
  )
  await exchange(simulator, rawPost('/v1/chat/completions', body))
  assert.equal(simulator.requests, 2)
  const [first, second] = entries
  assert.equal(first?.method, 'POST')
  assert.equal(first?.path, '/v1/chat/completions?a=%20b&&')
  assert.deepEqual(first?.headersRaw.slice(-6), ['Authorization', 'Bearer k', 'X-A', '1', 'x-a', '2'])
  assert.equal(String(first?.bodyBytes), body)
  assert.equal(first?.isComplete, true)
  // A wrong key is refused on sight: the body is never read.
  assert.equal(second?.bodyBytes.length, 0)
  assert.equal(second?.isComplete, false)
})

test('a client that leaves is counted, while it waits, reads, or still uploads', async () => {
  await using simulator = await started({ pace: 'realistic' })
  const leave = async (behaviour: string) => {
    const leaving = new AbortController()
    const response = fetch(`${simulator.messagesUrl}/v1/messages`, {
      method: 'POST',
      headers: { ...anthropicHeaders, 'x-simulator': behaviour },
      body: JSON.stringify(messageBody({ stream: true })),
      signal: leaving.signal,
    })
    await untilCounted(simulator, (counts) => counts.requests > requests)
    if (behaviour.startsWith('drip')) await response
    leaving.abort()
    await response.then((left) => left.text()).catch(() => undefined)
  }
  let { requests } = simulator
  await leave('delay=600000')
  await untilCounted(simulator, (counts) => counts.aborted === 1)
  requests = simulator.requests
  await leave('drip=600000')
  await untilCounted(simulator, (counts) => counts.aborted === 2)
  const head = 'POST /v1/files HTTP/1.1\r\nhost: s\r\ncontent-length: 100\r\n\r\nhalf of'
  const { connect } = await import('node:net')
  const socket = connect(simulator.port, simulator.host, () => socket.write(head))
  await untilCounted(simulator, (counts) => counts.requests === requests + 2)
  socket.destroy()
  await untilCounted(simulator, (counts) => counts.aborted === 3)
})

async function started(options: SimulatorOptions) {
  const simulator = await startSimulator(options)
  // Spreading would freeze the counters, which are read through getters.
  return Object.assign(simulator, { [Symbol.asyncDispose]: () => simulator.close() })
}
