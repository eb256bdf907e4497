import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const upstream = await ScriptedUpstream.start()
const at = { messagesUrl: upstream.url, messagesKey: 'pm', chatUrl: `${upstream.url}/v1`, chatKey: 'pc' }
const careful = await startGateway(at)
/** A gateway as open as an operator can configure it. */
const open = await startGateway({ ...at, settings: { unpriced: 'pass', minting: 'pass' } })
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
after(async () => {
  agent.destroy()
  await careful.close()
  await open.close()
  await upstream.close()
})

interface Answer {
  readonly status: number
  readonly body: string
  readonly code: string | undefined
}

/** Sends the path unchanged: fetch would change some paths. */
function ask(
  gateway: TestGateway,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '{"model":"gpt-6-luna"}',
): Promise<Answer> {
  const sent = method === 'GET' || method === 'HEAD' ? '' : body
  return new Promise((resolve, reject) => {
    const call = request(
      {
        agent,
        host: gateway.host,
        port: gateway.port,
        method,
        path,
        headers: {
          authorization: `Bearer ${gateway.apiKey}`,
          ...(sent === '' ? {} : { 'content-type': 'application/json', 'content-length': sent.length }),
          ...headers,
        },
      },
      async (reply) => {
        let text = ''
        for await (const piece of reply) text += piece
        const code = /"code":"(\w+)"/.exec(text)?.[1]
        resolve({ status: reply.statusCode ?? 0, body: text, code })
      },
    )
    call.on('error', reject)
    call.end(sent)
  })
}

async function nothingSent(work: () => Promise<void>): Promise<void> {
  const before = upstream.requestCount
  await work()
  assert.equal(upstream.requestCount, before, upstream.requests.at(-1)?.requestLine)
}

for (const [what, gateway] of [
  ['as it comes', careful],
  ['as open as can be', open],
] as const) {
  // test/providers/path-spelling.test.ts has more of them.
  test(`${what}: no other spelling of an endpoint reaches upstream`, async () => {
    await nothingSent(async () => {
      for (const path of words(`
        /v1/messages/ /V1/Messages /v1/%6dessages /messages /v1/v1/messages /v1/messages%2f /v1/messages;a
        /v1/realtime/client_secrets/ /v1/realtime/Client_secrets /v1/files/ /v1/files/file_1 /v1/new%2561
      `))
        for (const method of ['POST', 'PUT', 'PATCH']) {
          const { status, code } = await ask(gateway, method, path)
          assert.deepEqual([status, code], [404, 'endpoint_not_metered'], `${method} ${path}`)
        }
    })
  })
}

test('the refusal names the path sent and the path probably meant, in the shape of the surface', async () => {
  const message = (sent: string, meant: string) =>
    `There is no endpoint POST ${sent}. Did you mean POST ${meant}? Check the method and the base URL.`
  const chat = await ask(open, 'POST', '/chat/completions')
  assert.equal(chat.status, 404)
  assert.deepEqual(JSON.parse(chat.body), {
    error: {
      message: message('/chat/completions', '/v1/chat/completions'),
      type: 'invalid_request_error',
      param: null,
      code: 'endpoint_not_metered',
    },
  })
  const version = { 'anthropic-version': '2023-06-01' }
  const messages = await ask(open, 'POST', '/v1/v1/messages?beta=true', version)
  assert.equal(messages.status, 404)
  const { error } = JSON.parse(messages.body)
  assert.deepEqual(error, {
    type: 'not_found_error',
    message: message('/v1/v1/messages', '/v1/messages'),
    code: 'endpoint_not_metered',
  })
  const run = await ask(open, 'POST', '/v1/threads/thread_1/ru%6es', version)
  assert.match(run.body, /Did you mean POST \/v1\/threads\/\{thread_id\}\/runs\?/)
  const long = await ask(open, 'POST', `/v1/messages;${'x'.repeat(5_000)}`)
  assert.equal(long.code, 'endpoint_not_metered')
  assert.ok(long.body.length < 600, String(long.body.length))
})

test('a secret in a misspelled path is not repeated', async () => {
  const { body } = await ask(open, 'POST', `/v1/messages;key=${open.apiKey}`)
  assert.match(body, /endpoint_not_metered/)
  assert.ok(!body.includes(open.apiKey))
})

test('HEAD on a GET endpoint that mints is refused, in any spelling', async () => {
  await nothingSent(async () => {
    for (const path of [
      '/v1/environments/e/work/poll',
      '/v1/environments/e/work/poll/',
      '/environments/e/work/POLL',
    ]) {
      assert.equal((await ask(careful, 'HEAD', path)).status, 404, path)
      assert.equal((await ask(careful, 'GET', path)).status, 404, path)
    }
  })
})

test('reads may be spelled in any way, and plain paths that resemble no endpoint are forwarded unchanged', async () => {
  for (const [method, path] of [
    ['GET', '/v1/models/'],
    ['GET', '/v1/Models'],
    ['GET', '/v1/messages/'],
    ['GET', '/v1/chat/completions/'],
    ['HEAD', '/v1/models'],
    ['OPTIONS', '/v1/Messages;a/'],
    ['POST', '/v1/brand-new'],
    ['POST', '/v2/messages'],
    ['PUT', '/v1/%62rand:new/'],
  ] as const) {
    const arrival = upstream.nextRequest()
    assert.equal((await ask(careful, method, path)).status, 200, `${method} ${path}`)
    assert.equal((await arrival).requestLine, `${method} ${path} HTTP/1.1`)
  }
})
