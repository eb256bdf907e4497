import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { Documented } from './documented.ts'

/** Real answers of every documented endpoint, checked against the document that the same gateway serves. */

/** How far each look at the clock moves it. */
let hasteMs = 0
let passedMs = 0
const clock = {
  nowMs: () => Date.now(),
  monotonicMs() {
    passedMs += hasteMs
    return performance.now() + passedMs
  },
}
const simulator = await startSimulator({ chatKey: 'pc' })
const gateway = await startGateway({
  chatUrl: simulator.chatUrl,
  chatKey: 'pc',
  clock,
  settings: { webhooksAllowPrivate: true },
})
after(async () => {
  await gateway.close()
  await simulator.close()
})

interface Asked {
  readonly path: string
  readonly body?: unknown
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

async function ask(method: string, { path, body, key = gateway.adminKey, headers = {} }: Asked) {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  const json: unknown = isJson ? JSON.parse(text) : text
  return { status: response.status, headers: response.headers, json }
}

const served = await ask('GET', { path: '/gateway/openapi.json' })
const documented = new Documented(served.json as Record<string, unknown>)

const full = {
  name: 'all its fields',
  monthly_budget_usd: 12.000000001,
  allowed_models: ['gpt-6-luna'],
  log_requests: true,
  expires_at: '2999-12-31T23:59:59.999Z',
}

async function newKey(): Promise<string> {
  const { json } = await ask('POST', { path: '/v1/keys', body: full })
  return (json as { id: string }).id
}

async function revokedKey(): Promise<string> {
  const id = await newKey()
  await gateway.revokeKey(id)
  return id
}

const everyField = {
  url: 'http://127.0.0.1:9/hook',
  events: ['key.budget.threshold', 'webhook.disabled'],
  description: '',
  format: 'slack',
}

async function newWebhook(enabled = true): Promise<string> {
  const { json } = await ask('POST', { path: '/gateway/v1/webhooks', body: everyField })
  const { id } = json as { id: string }
  const path = `/gateway/v1/webhooks/${id}`
  if (!enabled) await ask('PATCH', { path, body: { enabled } })
  return path
}

/** The path of a delivery; without `enabled` its webhook is disabled afterwards. */
async function newDelivery(enabled = true): Promise<string> {
  const path = await newWebhook()
  const { json } = await ask('POST', { path: `${path}/test` })
  if (!enabled) await ask('PATCH', { path, body: { enabled } })
  return `${path}/deliveries/${(json as { id: string }).id}`
}

/** Runs a command once under a name, so that the same name for another command is a conflict. */
async function usedName(method: string, path: string, body: unknown): Promise<Record<string, string>> {
  const headers = { 'idempotency-key': crypto.randomUUID() }
  await ask(method, { path, body, headers })
  return headers
}

/** A call through the gateway; resolves with the request id of its answer. */
async function call(path: string, body?: unknown, simulate = ''): Promise<string> {
  const headers = {
    'content-type': 'application/json',
    ...(simulate === '' ? {} : { 'x-simulator': simulate }),
  }
  const method = body === undefined ? 'GET' : 'POST'
  const answer = await ask(method, { path, key: gateway.apiKey, body, headers })
  assert.equal(answer.status, simulate === 'status=429' ? 429 : 200, JSON.stringify(answer.json))
  return answer.headers.get('x-svc-request-id') ?? ''
}

/** The path of a logged call's bodies, once they are kept, which is after the answer has left. */
async function loggedCall(): Promise<string> {
  const { json } = await ask('POST', { path: '/v1/keys', body: { name: 'logged', log_requests: true } })
  const { headers } = await ask('GET', { path: '/v1/models', key: (json as { key: string }).key })
  const path = `/gateway/v1/requests/${headers.get('x-svc-request-id')}/bodies`
  await until('its bodies are kept', async () => (await ask('GET', { path })).status === 200)
  return path
}

/** The headers of a request with a session of its own. */
async function signedIn(): Promise<Omit<Asked, 'path'>> {
  const body = { admin_key: gateway.adminKey }
  const { headers, json } = await ask('POST', { path: '/gateway/v1/session', key: null, body })
  const cookie = headers.get('set-cookie')?.split(';')[0] ?? ''
  return { key: null, headers: { cookie, 'x-csrf-token': (json as { csrf_token: string }).csrf_token } }
}

const sessions = [await signedIn(), await signedIn()]
const SESSION = '/gateway/v1/session'

const hello = { model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hello' }] }

type Sample = () => Asked | Promise<Asked>

/** Requests that succeed, for every endpoint: with all members, and with as few as possible. */
const successes: Readonly<Record<string, readonly Sample[]>> = {
  'POST /v1/keys': [
    () => ({ path: '/v1/keys', body: full }),
    () => ({ path: '/v1/keys', body: { name: 'x', monthly_budget_usd: null, allowed_models: null } }),
    async () => {
      const headers = await usedName('POST', '/v1/keys', full)
      return { path: '/v1/keys', body: full, headers }
    },
  ],
  'GET /v1/keys': [
    () => ({ path: '/v1/keys' }),
    () => ({ path: '/v1/keys?limit=1' }),
    () => ({ path: '/v1/keys?status=expired&search=nothing+like+it' }),
    () => ({ path: '/v1/keys?sort=attention&limit=1' }),
  ],
  'GET /v1/usage': [
    () => ({ path: '/v1/usage' }),
    async () => {
      await call('/v1/chat/completions', hello)
      return { path: '/v1/usage?group_by=day,model,key&limit=1' }
    },
    () => ({ path: '/v1/usage?group_by=key&format=json', key: gateway.apiKey }),
  ],
  'GET /v1/keys/me': [() => ({ path: '/v1/keys/me', key: gateway.apiKey })],
  'GET /v1/keys/{id}': [
    async () => ({ path: `/v1/keys/${await newKey()}` }),
    async () => ({ path: `/v1/keys/${await revokedKey()}?expand=last_used_by` }),
  ],
  'PATCH /v1/keys/{id}': [
    async () => ({ path: `/v1/keys/${await newKey()}`, body: full }),
    async () => ({ path: `/v1/keys/${await newKey()}` }),
  ],
  'DELETE /v1/keys/{id}': [async () => ({ path: `/v1/keys/${await newKey()}` })],
  'POST /v1/keys/{id}/revoke': [async () => ({ path: `/v1/keys/${await newKey()}/revoke` })],
  'POST /v1/keys/{id}/rotate': [
    async () => ({ path: `/v1/keys/${await newKey()}/rotate` }),
    async () => ({ path: `/v1/keys/${await newKey()}/rotate`, body: { old_expires_in_seconds: 60 } }),
  ],
  'GET /gateway/v1/requests': [
    async () => {
      await call('/v1/models')
      return { path: '/gateway/v1/requests?limit=1' }
    },
    () => ({ path: '/gateway/v1/requests?start=2026-01-01&end=2026-01-02T00:00:00Z&flag=overrun' }),
  ],
  'GET /v1/keys/{id}/requests': [
    async () => {
      await call('/v1/chat/completions', hello)
      const { json } = await ask('GET', { path: '/v1/keys/me', key: gateway.apiKey })
      return { path: `/v1/keys/${(json as { id: string }).id}/requests?status=settled&min_cost_usd=0` }
    },
    async () => ({ path: `/v1/keys/${await revokedKey()}/requests` }),
  ],
  'GET /gateway/v1/requests/{id}': [
    async () => ({ path: `/gateway/v1/requests/${await call('/v1/models')}` }),
    async () => ({
      path: `/gateway/v1/requests/${await call('/v1/chat/completions', hello)}`,
      key: gateway.apiKey,
    }),
    async () => ({ path: `/gateway/v1/requests/${await call('/v1/models')}?expand=bill` }),
    async () => ({ path: `/gateway/v1/requests/${await call('/v1/chat/completions', hello)}?expand=bill` }),
    async () => ({ path: `/gateway/v1/requests/${await call('/v1/chat/completions', hello, 'status=429')}` }),
  ],
  'GET /gateway/v1/requests/{id}/bodies': [async () => ({ path: await loggedCall() })],
  'GET /gateway/v1/balance': [() => ({ path: '/gateway/v1/balance' })],
  'POST /gateway/v1/credits': [
    () => ({ path: '/gateway/v1/credits', body: { amount_usd: 0.000000001, reason: 'the least' } }),
  ],
  'GET /gateway/v1/overview': [
    async () => {
      await ask('POST', { path: '/v1/keys', body: full })
      await call('/v1/chat/completions', hello)
      return { path: '/gateway/v1/overview' }
    },
  ],
  'GET /gateway/v1/prices': [() => ({ path: '/gateway/v1/prices' })],
  'POST /gateway/v1/session': [() => ({ path: SESSION, key: null, body: { admin_key: gateway.adminKey } })],
  'GET /gateway/v1/session': [() => ({ path: SESSION, ...sessions[0] })],
  'DELETE /gateway/v1/session': [() => ({ path: SESSION, ...sessions[1] })],
  'GET /metrics': [() => ({ path: '/metrics' })],
  'POST /gateway/v1/webhooks': [
    () => ({ path: '/gateway/v1/webhooks', body: everyField }),
    () => ({ path: '/gateway/v1/webhooks', body: { url: 'https://a.example', events: ['*'] } }),
    async () => {
      const headers = await usedName('POST', '/gateway/v1/webhooks', everyField)
      return { path: '/gateway/v1/webhooks', body: everyField, headers }
    },
  ],
  'GET /gateway/v1/webhooks': [
    () => ({ path: '/gateway/v1/webhooks' }),
    () => ({ path: '/gateway/v1/webhooks?limit=1' }),
  ],
  'GET /gateway/v1/webhooks/{id}': [async () => ({ path: await newWebhook() })],
  'PATCH /gateway/v1/webhooks/{id}': [
    async () => ({ path: await newWebhook(), body: { ...everyField, enabled: false } }),
    async () => ({ path: await newWebhook(false), body: { enabled: true } }),
  ],
  'DELETE /gateway/v1/webhooks/{id}': [async () => ({ path: await newWebhook() })],
  'POST /gateway/v1/webhooks/{id}/rotate-secret': [
    async () => ({ path: `${await newWebhook()}/rotate-secret` }),
  ],
  'POST /gateway/v1/webhooks/{id}/test': [async () => ({ path: `${await newWebhook()}/test` })],
  'GET /gateway/v1/webhooks/{id}/deliveries': [
    async () => ({ path: (await newDelivery()).replace(/\/whd_.*/, '?status=pending&limit=1') }),
    async () => ({ path: (await newDelivery()).replace(/\/whd_.*/, '?status=failed') }),
  ],
  'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver': [
    async () => ({ path: `${await newDelivery()}/redeliver` }),
  ],
  'GET /gateway/openapi.json': [() => ({ path: '/gateway/openapi.json' })],
}

/** Requests that are refused because of an earlier one. */
const conflicts: Readonly<Record<string, readonly Sample[]>> = {
  'POST /v1/keys': [
    async () => {
      const headers = await usedName('POST', '/v1/keys', full)
      return { path: '/v1/keys', body: { name: 'another' }, headers }
    },
  ],
  'POST /gateway/v1/webhooks': [
    async () => {
      const headers = await usedName('POST', '/gateway/v1/webhooks', everyField)
      return { path: '/gateway/v1/webhooks', body: { ...everyField, events: ['*'] }, headers }
    },
  ],
  'POST /gateway/v1/webhooks/{id}/rotate-secret': [
    async () => {
      const headers = await usedName('POST', '/gateway/v1/webhooks', everyField)
      return { path: `${await newWebhook()}/rotate-secret`, headers }
    },
  ],
  'POST /gateway/v1/webhooks/{id}/test': [async () => ({ path: `${await newWebhook(false)}/test` })],
  'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver': [
    async () => ({ path: `${await newDelivery(false)}/redeliver` }),
  ],
  'PATCH /v1/keys/{id}': [async () => ({ path: `/v1/keys/${await revokedKey()}`, body: { name: 'late' } })],
  'POST /v1/keys/{id}/rotate': [async () => ({ path: `/v1/keys/${await revokedKey()}/rotate` })],
  'POST /gateway/v1/credits': [
    async () => {
      const body = { amount_usd: 1, reason: 'once' }
      const headers = await usedName('POST', '/gateway/v1/credits', body)
      return { path: '/gateway/v1/credits', body: { ...body, amount_usd: 2 }, headers }
    },
  ],
}

const wrongSignIn = (): Asked => ({ path: SESSION, key: null, body: { admin_key: 'nonsense' } })

/** Requests that an endpoint answers with the error of this status; null where a test cannot bring it about. */
function refusals(name: string, status: string): readonly Sample[] | null {
  const template = name.split(' ')[1] ?? ''
  const path = template.replaceAll(/\{\w+\}/g, 'none')
  switch (status) {
    case '400':
      return [() => ({ path: `${path}?no_such_parameter=1` })]
    case '401':
      if (name === `POST ${SESSION}`) return [wrongSignIn]
      return [() => ({ path, key: null }), () => ({ path, key: 'svc_live_nonsense' })]
    case '403':
      return [() => ({ path, key: gateway.apiKey })]
    case '404':
      // These endpoints answer 404 only to a local command, in a process that serves no gateway.
      if (/ \/gateway\/v1\/prices$/.test(name)) return null
      return [() => ({ path, ...(name.startsWith('PATCH') ? { body: {} } : {}) })]
    case '409':
      return conflicts[name] ?? []
    case '429':
      return [
        async () => {
          for (let failed = 0; failed < 10; failed += 1) await ask('POST', wrongSignIn())
          return wrongSignIn()
        },
      ]
    case '413':
      return [() => ({ path, body: { name: 'x'.repeat(70_000) } })]
    // A body that stops arriving, a defect and a store that is away have tests of their own.
    case '408':
    case '500':
    case '503':
    case 'default':
      return null
    default:
      return []
  }
}

for (const [name, operation] of documented.operations()) {
  const [method = ''] = name.split(' ')
  for (const status of Object.keys(operation.responses)) {
    const succeeds = status.startsWith('2')
    const samples = succeeds ? (successes[name] ?? []) : refusals(name, status)
    if (samples === null) continue
    test(`${name} ${status}: the answer is as documented`, async () => {
      assert.ok(samples.length > 0, 'say in this test how to come by this answer')
      for (const sample of samples) {
        const asked = await sample()
        const schema = operation.requestBody?.content['application/json']?.schema
        if (succeeds && asked.body !== undefined) documented.assertConforms(schema, asked.body)
        const answer = await ask(method, asked)
        assert.equal(String(answer.status), status, JSON.stringify(answer.json))
        const response = documented.response(name, answer.status)
        if (status === '204') {
          assert.equal(response.content, undefined)
          assert.equal(answer.headers.get('content-type'), null)
        } else {
          const contentType = answer.headers.get('content-type')?.split(';')[0] ?? ''
          assert.equal(contentType, Object.keys(response.content ?? {})[0])
          documented.assertConforms(response.content?.[contentType]?.schema, answer.json)
        }
        assert.match(answer.headers.get('x-svc-request-id') ?? '', /^req_/)
        for (const header of ['retry-after', 'idempotent-replayed']) {
          if (answer.headers.has(header)) assert.ok(Object.hasOwn(response.headers, header), header)
        }
      }
    })
  }
}

test('the samples are of documented endpoints', () => {
  const names = [...documented.operations().keys()]
  for (const name of [...Object.keys(successes), ...Object.keys(conflicts)])
    assert.ok(names.includes(name), name)
})

test('an error of HTTP itself is as documented for every endpoint', async () => {
  for (const [name, operation] of documented.operations()) {
    const path = (name.split(' ')[1] ?? '').replaceAll(/\{\w+\}/g, 'none')
    const { status, json } = await ask('PUT', { path })
    assert.equal(status, 405)
    const response = documented.resolve(operation.responses['default']) as {
      content: Record<string, unknown>
    }
    documented.assertConforms((response.content['application/json'] as { schema: unknown }).schema, json)
  }
})

test('the document has the version of the package', () => {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { info } = served.json as { info: { version: string } }
  assert.equal(info.version, (JSON.parse(file) as { version: string }).version)
})

test('GET /gateway/v1/requests/{id} 200: of a call in flight it is as documented too', async () => {
  const gone = new AbortController()
  const stream = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.apiKey}`, 'x-simulator': 'drip=60000' },
    body: JSON.stringify({ ...hello, stream: true }),
    signal: gone.signal,
  })
  const path = `/gateway/v1/requests/${stream.headers.get('x-svc-request-id')}`
  // The request waits half a minute for the call; at the second look at the clock that time is over.
  hasteMs = 20_000
  const { json } = await ask('GET', { path })
  hasteMs = 0
  gone.abort()
  assert.equal((json as { state: string }).state, 'in_flight')
  const response = documented.response('GET /gateway/v1/requests/{id}', 200)
  documented.assertConforms(response.content?.['application/json']?.schema, json)
})

test('a member that is missing or not documented, and a code of another status, would be seen', async () => {
  const schemaOf = (status: number) =>
    documented.response('GET /gateway/v1/balance', status).content?.['application/json']?.schema
  const { json } = await ask('GET', { path: '/gateway/v1/balance' })
  const balance = json as Record<string, unknown>
  documented.assertConforms(schemaOf(200), balance)
  const { held_usd: _, ...less } = balance
  assert.throws(() => documented.assertConforms(schemaOf(200), less), /held_usd/)
  assert.throws(() => documented.assertConforms(schemaOf(200), { ...balance, more: 1 }), /additional/)
  const error = { message: '', type: 'invalid_request_error', param: null, code: 'invalid_api_key' }
  documented.assertConforms(schemaOf(401), { error, request_id: 'req_x' })
  const other = { ...error, code: 'not_found' }
  assert.throws(() => documented.assertConforms(schemaOf(401), { error: other, request_id: 'req_x' }), /code/)
})
