import assert from 'node:assert/strict'
import { statuses } from '../../simulator/behaviours.ts'
import { messagesBodyBytesMax } from '../../simulator/limits.ts'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig } from './dig.ts'
import { anthropicHeaders, chatBody, exchange, messageBody, post, postJson, send } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator({ messagesKey: 'sk-ant-right', chatKey: 'sk-right' })
})
after(() => simulator.close())

const messagesKey = { ...anthropicHeaders, 'x-api-key': 'sk-ant-right' }
const chatKey = { authorization: 'Bearer sk-right' }

test('every status can be asked for and comes in the shape of its surface', async () => {
  for (const status of statuses) {
    const behaviour = `status=${status}`
    const messages = await postJson(simulator, '/v1/messages', messageBody(), {
      headers: messagesKey,
      behaviour,
    })
    assert.equal(messages.status, status)
    assert.equal(dig(messages.json, 'type'), 'error')
    assert.match(String(dig(messages.json, 'error.type')), /_error$|^request_too_large$/)
    assert.equal(dig(messages.json, 'request_id'), messages.headers.get('request-id'))
    const chat = await postJson(simulator, '/v1/chat/completions', chatBody(), {
      headers: chatKey,
      behaviour,
    })
    assert.equal(chat.status, status)
    assert.deepEqual(Object.keys(Object(dig(chat.json, 'error'))), ['message', 'type', 'param', 'code'])
    assert.ok(chat.headers.get('x-request-id'))
  }
})

test('a rate limit says when to come back', async () => {
  const behaviour = 'status=429'
  const messages = await post(simulator, '/v1/messages', messageBody(), { headers: messagesKey, behaviour })
  assert.equal(messages.headers.get('retry-after'), '2')
  assert.equal(messages.headers.get('anthropic-ratelimit-requests-remaining'), '0')
  const chat = await postJson(simulator, '/v1/responses', {}, { headers: chatKey, behaviour })
  assert.equal(chat.headers.get('retry-after'), '2')
  assert.equal(chat.headers.get('x-ratelimit-remaining-requests'), '0')
  assert.equal(dig(chat.json, 'error.code'), 'rate_limit_exceeded')
})

test('overload has the type that only the Messages surface has', async () => {
  const { json } = await postJson(simulator, '/v1/messages', messageBody(), {
    headers: messagesKey,
    behaviour: 'status=529',
  })
  assert.deepEqual(dig(json, 'error'), { type: 'overloaded_error', message: 'Overloaded' })
})

test('Messages takes its key in either header and refuses others with upstream’s own words', async () => {
  const call = (headers: Record<string, string>) =>
    postJson(simulator, '/v1/messages', messageBody(), { headers: { ...anthropicHeaders, ...headers } })
  assert.equal((await call({ 'x-api-key': 'sk-ant-right' })).status, 200)
  assert.equal((await call({ authorization: 'Bearer sk-ant-right' })).status, 200)
  for (const [headers, message] of [
    [{}, 'x-api-key header is required'],
    [{ 'x-api-key': 'sk-ant-wrong' }, 'invalid x-api-key'],
    [{ authorization: 'Bearer sk-right' }, 'Invalid bearer token'],
  ] as const) {
    const { status, json } = await call(headers)
    assert.equal(status, 401)
    assert.deepEqual(dig(json, 'error'), { type: 'authentication_error', message })
  }
})

test('Chat takes its key as a bearer token only', async () => {
  const call = (headers: Record<string, string>) =>
    postJson(simulator, '/v1/chat/completions', chatBody(), { headers })
  assert.equal((await call(chatKey)).status, 200)
  assert.equal((await call({})).status, 401)
  assert.equal((await call({ 'x-api-key': 'sk-right' })).status, 401)
  assert.equal(dig((await call({ authorization: 'Bearer no' })).json, 'error.code'), 'invalid_api_key')
})

test('an unknown path is 404 and a wrong method 405, each in the shape of the surface', async () => {
  const messages = await send(simulator, 'GET', '/v1/nothing', messagesKey)
  assert.equal(messages.status, 404)
  assert.equal(dig(messages.json, 'error.type'), 'not_found_error')
  const chat = await send(simulator, 'GET', '/v1/nothing', chatKey)
  assert.match(String(dig(chat.json, 'error.message')), /^Invalid URL \(GET \/v1\/nothing\)/)
  for (const [answer, path] of [
    [messages, '/v1/messages/batches'],
    [chat, '/v1/audio/speech'],
  ] as const) {
    const message = String(dig(answer.json, 'error.message'))
    assert.match(message, /This is the simulator/)
    assert.ok(message.includes(path), message)
  }
  const method = await send(simulator, 'PUT', '/v1/embeddings', chatKey)
  assert.equal(method.status, 405)
  assert.equal(method.headers.get('allow'), 'POST')
  assert.equal((await send(simulator, 'GET', '/v1/messages', messagesKey)).status, 405)
})

test('an unknown behaviour is a 400 that names it', async () => {
  const { status, json } = await postJson(simulator, '/v1/messages', messageBody(), {
    headers: messagesKey,
    behaviour: 'explode=1',
  })
  assert.equal(status, 400)
  assert.match(String(dig(json, 'error.message')), /'explode'/)
})

test('a preflight is answered without a key, and a page without permission is refused', async () => {
  const preflight = await fetch(`${simulator.messagesUrl}/v1/messages`, {
    method: 'OPTIONS',
    headers: { 'access-control-request-headers': 'x-api-key, anthropic-version' },
  })
  assert.equal(preflight.status, 200)
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'x-api-key, anthropic-version')

  const raw = async (headers: string) =>
    String(
      await exchange(
        simulator,
        `GET /v1/models HTTP/1.1\r\nhost: s\r\nconnection: close\r\norigin: https://a.example\r\n${headers}\r\n\r\n`,
      ),
    )
  const key = 'anthropic-version: 2026-10-21\r\nx-api-key: sk-ant-right'
  assert.match(await raw(key), /^HTTP\/1\.1 401 /)
  const allowed = await raw(`${key}\r\nanthropic-dangerous-direct-browser-access: true`)
  assert.match(allowed, /^HTTP\/1\.1 200 /)
  assert.match(allowed, /access-control-allow-origin: \*/)
})

test('HEAD is answered as GET without the body', async () => {
  const head = await fetch(`${simulator.chatUrl}/models`, { method: 'HEAD', headers: chatKey })
  const full = await fetch(`${simulator.chatUrl}/models`, { headers: chatKey })
  assert.equal(head.status, 200)
  assert.equal(head.headers.get('content-length'), full.headers.get('content-length'))
  assert.equal((await head.text()).length, 0)
  await full.text()
})

test('a body above the limit is refused before it has been read', async () => {
  const head = [
    'POST /v1/messages HTTP/1.1',
    'host: s',
    'connection: close',
    'anthropic-version: 2026-10-21',
    'x-api-key: sk-ant-right',
    `content-length: ${messagesBodyBytesMax + 1}`,
  ]
  const answer = String(await exchange(simulator, `${head.join('\r\n')}\r\n\r\n`))
  assert.match(answer, /^HTTP\/1\.1 413 /)
  assert.match(answer, /"type":"request_too_large"/)
})

test('100 Continue is sent only after the key was accepted', async () => {
  const head = (key: string) =>
    [
      'POST /v1/messages HTTP/1.1',
      'host: s',
      'connection: close',
      'expect: 100-continue',
      'anthropic-version: 2026-10-21',
      `x-api-key: ${key}`,
      'content-length: 2',
    ].join('\r\n')
  const refused = String(await exchange(simulator, `${head('wrong')}\r\n\r\n`))
  assert.match(refused, /^HTTP\/1\.1 401 /)
  const accepted = String(await exchange(simulator, `${head('sk-ant-right')}\r\n\r\n{}`))
  assert.match(accepted, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
})
