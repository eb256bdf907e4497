import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { closedPort } from '../support/closed-port.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { CANARIES, type Environment, examineWith, Ward } from './doctor-ward.ts'

const ward = new Ward()
const dataDir = ward.newFolder()
let upstream: ScriptedUpstream
let chat: Environment

before(async () => {
  upstream = await ScriptedUpstream.start()
  chat = { TOLLGATE_CHAT_URL: `${upstream.url}/v1`, TOLLGATE_CHAT_KEY: CANARIES.chatKey }
})

afterEach(() => upstream.forget())

after(async () => {
  await upstream.close()
  ward.discharge()
})

function answerWith(statusLine: string, headerLines: readonly string[] = [], body: object = {}): void {
  const reply = sized(
    `HTTP/1.1 ${statusLine}`,
    ['Content-Type: application/json', ...headerLines],
    Buffer.from(JSON.stringify(body)),
  )
  upstream.answer(() => [{ send: reply }])
}

const listOf = (...ids: string[]): object => ({ object: 'list', data: ids.map((id) => ({ id })) })

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

test('upstream is asked once for its models, with the key and nothing of ours', async () => {
  answerWith('200 OK', [], listOf('gpt-5'))
  const report = await examineWith(dataDir, chat)
  assert.equal(report.check('upstream_chat').state, 'ok')
  assert.equal(upstream.requests.length, 1)
  const [request] = upstream.requests
  assert.equal(request?.requestLine, 'GET /v1/models HTTP/1.1')
  assert.deepEqual(headerValues(request?.headerLines ?? [], 'authorization'), [`Bearer ${CANARIES.chatKey}`])
})

test('the Messages API is asked for all of its models at once, in the version that it asks for', async () => {
  answerWith('200 OK', [], { data: [{ id: 'claude-haiku-5-5' }] })
  const report = await examineWith(dataDir, {
    TOLLGATE_MESSAGES_URL: upstream.url,
    TOLLGATE_MESSAGES_KEY: CANARIES.messagesKey,
  })
  assert.equal(report.check('upstream_messages').state, 'ok')
  const [request] = upstream.requests
  assert.equal(request?.requestLine, 'GET /v1/models?limit=1000 HTTP/1.1')
  assert.deepEqual(headerValues(request?.headerLines ?? [], 'anthropic-version'), ['2023-06-01'])
})

test("a key that the provider refuses is a problem that names its variable, the provider's own too", async () => {
  const simulator = await startSimulator({ messagesKey: 'the right one', chatKey: 'the right one' })
  try {
    const report = await examineWith(dataDir, {
      TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
      ANTHROPIC_API_KEY: CANARIES.messagesKey,
      TOLLGATE_CHAT_URL: simulator.chatUrl,
      TOLLGATE_CHAT_KEY: CANARIES.chatKey,
    })
    const { state, found, todo } = report.check('upstream_messages')
    assert.equal(state, 'problem')
    assert.match(found, /^the provider refuses the key in ANTHROPIC_API_KEY \(401 from 127\.0\.0\.1:\d+\)$/)
    assert.match(todo ?? '', /whole, in force/)
    assert.match(report.check('upstream_chat').found, /refuses the key in TOLLGATE_CHAT_KEY \(401/)

    const keyless = await examineWith(dataDir, { TOLLGATE_CHAT_URL: simulator.chatUrl })
    assert.match(keyless.check('upstream_chat').found, /asks for a key \(401\), and none is set$/)
    assert.equal(keyless.check('upstream_chat').todo, 'Set TOLLGATE_CHAT_KEY or OPENAI_API_KEY.')
  } finally {
    await simulator.close()
  }
})

test('an upstream that nobody listens at is a problem', async () => {
  const port = await closedPort()
  const report = await examineWith(dataDir, { TOLLGATE_CHAT_URL: `http://127.0.0.1:${port}/v1` })
  assert.equal(report.check('upstream_chat').state, 'problem')
  assert.equal(report.check('upstream_chat').found, `127.0.0.1:${port} refuses the connection`)
  assert.equal(report.check('clock').state, 'skipped')
})

test('an upstream that never answers, or never ends its answer, is a problem after the deadline', async () => {
  const silent = createServer()
  const port = await listen(silent)
  upstream.answer(() => [
    { send: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{' },
    { pause: new Promise(() => {}) },
  ])
  try {
    const report = await examineWith(
      dataDir,
      { ...chat, TOLLGATE_MESSAGES_URL: `http://127.0.0.1:${port}` },
      ['--timeout', '2'],
    )
    const { state, found } = report.check('upstream_messages')
    assert.equal(state, 'problem')
    assert.equal(found, `127.0.0.1:${port} took the connection and gave no answer within 2 s`)
    assert.match(report.check('upstream_chat').found, /did not finish its answer within 2 s$/)
  } finally {
    upstream.closeConnections('reset')
    silent.close()
  }
})

test('an upstream that breaks off, and one that speaks no TLS, are problems', async () => {
  upstream.answer(() => [{ send: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{' }, { reset: true }])
  const cut = await examineWith(dataDir, chat)
  assert.match(cut.check('upstream_chat').found, /broke off \(ECONNRESET\)$/)
  const plain = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const port = await listen(plain)
  try {
    const report = await examineWith(dataDir, { TOLLGATE_CHAT_URL: `https://127.0.0.1:${port}/v1` })
    assert.match(report.check('upstream_chat').found, /^no TLS with 127\.0\.0\.1:\d+: E/)
    assert.match(report.check('upstream_chat').todo ?? '', /NODE_EXTRA_CA_CERTS/)
  } finally {
    plain.close()
  }
})

test('a redirect is a problem that says where it leads, without what is secret in it', async () => {
  const query = `?token=${CANARIES.chatKey}`
  answerWith('302 Found', [`Location: https://other.example/${CANARIES.chatKey}/v1/models${query}`])
  const report = await examineWith(dataDir, chat)
  const { state, found } = report.check('upstream_chat')
  assert.equal(state, 'problem')
  assert.match(found, /redirects \(302\) to https:\/\/other\.example\/\[secret\]\/v1\/models$/)
  assert.equal(upstream.requests.length, 1)
})

test('what upstream answers decides: a missing list warns, a failure is a problem, a wait warns', async () => {
  for (const [statusLine, state, found] of [
    ['404 Not Found', 'warning', /answers 404 and gives no list of models/],
    ['403 Forbidden', 'problem', /refuses the key in TOLLGATE_CHAT_KEY \(403/],
    ['429 Too Many Requests', 'warning', /asks to wait \(429\)/],
    ['500 Internal Server Error', 'problem', /fails \(500\)/],
    ['200 OK', 'warning', /answers 200 and gives no list of models/],
  ] as const) {
    answerWith(statusLine)
    const report = await examineWith(dataDir, chat)
    assert.equal(report.check('upstream_chat').state, state, statusLine)
    assert.match(report.check('upstream_chat').found, found)
    assert.match(report.check('prices').found, /not compared/)
  }
})

test('models without a price are named, twenty of them, and cannot draw on the terminal', async () => {
  const unknown = Array.from({ length: 23 }, (_, at) => `unheard-of-${at}`)
  answerWith('200 OK', [], listOf('gpt-5', `\x1b[2Jred\u202e-${CANARIES.chatKey}`, ...unknown))
  const report = await examineWith(dataDir, chat)
  const { state, found, todo } = report.check('prices')
  assert.equal(state, 'warning')
  assert.match(
    found,
    /^no price for 24 of 25 models that upstream lists: \?\[2Jred\?-\[secret\], unheard-of-0, /,
  )
  assert.match(found, /unheard-of-18 and 4 more$/)
  assert.match(todo ?? '', /tollgate prices import.*TOLLGATE_PRICES/)
  assert.equal(report.code, 0)
})

test('a clock that differs from upstream warns, and is a problem beyond a minute', async () => {
  for (const [seconds, state, found] of [
    [4, 'ok', /^agrees with 127/],
    [-30, 'warning', /^this machine is (29|30) s ahead of 127/],
    [3_600, 'problem', /^this machine is 60 min behind 127/],
  ] as const) {
    upstream.answer(() => {
      const date = new Date(Date.now() + seconds * 1_000).toUTCString()
      return [{ send: sized('HTTP/1.1 200 OK', [`Date: ${date}`], '{"data":[]}') }]
    })
    const report = await examineWith(dataDir, chat)
    assert.equal(report.check('clock').state, state)
    assert.match(report.check('clock').found, found)
  }
})
