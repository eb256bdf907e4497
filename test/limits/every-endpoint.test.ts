import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { startGateway } from '../support/gateway.ts'
import { everyNth } from '../support/scale.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway(upstream.urls)
const FORBIDDEN = 'claude-opus-5-5'
closeAfter(gateway, upstream)

const endpoints = allEndpoints().filter(({ method }) => method !== 'WS')
const billable = endpoints.filter(({ billing }) => billing !== 'free')

interface Answer {
  readonly status: number
  readonly code: string | null
}

/** A call with the forbidden model in every position where an endpoint could read it. */
async function call({ surface, method, template, reads }: Endpoint, key: string | null): Promise<Answer> {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'model' ? FORBIDDEN : 'x1'))
  const json = JSON.stringify({
    model: FORBIDDEN,
    max_tokens: 8,
    requests: [{ custom_id: '1', params: { model: FORBIDDEN } }],
    input_file_id: 'file_of_somebody',
    session: { model: FORBIDDEN },
    agent: { model: FORBIDDEN },
    grader: { model: FORBIDDEN },
  })
  const form = new FormData()
  form.set('model', FORBIDDEN)
  const body = method === 'GET' ? {} : { body: reads === 'multipart' ? form : json }
  const response = await fetch(`${gateway.url}${path}?model=${FORBIDDEN}`, {
    method,
    headers: {
      ...headersFor(surface, key),
      ...(reads === 'multipart' ? {} : { 'content-type': 'application/json' }),
    },
    ...body,
  })
  const text = await response.text()
  const error = text.includes('"error"') ? (JSON.parse(text) as { error: { code: string } }).error : null
  return { status: response.status, code: error?.code ?? null }
}

function headersFor(surface: Surface, key: string | null): Record<string, string> {
  const version: Record<string, string> = surface === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}
  return key === null ? version : { ...version, authorization: `Bearer ${key}` }
}

async function withKey(fields: Record<string, unknown>): Promise<string> {
  return (await gateway.createKey('walker', fields)).key
}

const PARALLEL = 32

async function odd(
  among: readonly Endpoint[],
  key: string | null,
  expected: (answer: Answer, endpoint: Endpoint) => boolean,
): Promise<string[]> {
  const answers: { readonly endpoint: Endpoint; readonly answer: Answer }[] = []
  // Not all at once: on a busy machine the store refuses calls that wait too long.
  const left = among.values()
  const walk = async () => {
    for (const endpoint of left) answers.push({ endpoint, answer: await call(endpoint, key) })
  }
  await Promise.all(Array.from({ length: PARALLEL }, walk))
  return answers
    .filter(({ endpoint, answer }) => !expected(answer, endpoint))
    .map(
      ({ endpoint, answer }) =>
        `${endpoint.surface} ${endpoint.method} ${endpoint.template}: ${JSON.stringify(answer)}`,
    )
}

async function nothingSent(work: () => Promise<void>): Promise<void> {
  const beforehand = upstream.requestCount
  await work()
  assert.equal(upstream.requestCount, beforehand, 'something went upstream')
}

test('no endpoint is reached without a key, or with a foreign, revoked or admin key', async () => {
  const { id, key: revoked } = await gateway.createKey('revoked')
  await gateway.revokeKey(id)
  const strangers = [null, 'sk-ant-api03-x', 'svc_live_nonsense', gateway.adminKey, revoked]
  await nothingSent(async () => {
    for (const key of strangers) {
      const isDue = everyNth(strangers.length)
      const some = endpoints.filter((_, at) => isDue(at))
      assert.deepEqual(await odd(some, key, ({ status }) => status === 401), [])
    }
  })
})

test('no billable endpoint reaches a model outside the allowlist', async () => {
  const key = await withKey({ allowed_models: ['gpt-6-luna'] })
  // The allowlist does not apply to an endpoint without a model.
  const leading = billable.filter(({ model }) => model !== 'none')
  await nothingSent(async () => {
    const expected = ({ billing, makes }: Endpoint) => {
      if (billing === 'mints_credential') return '404 minting_refused'
      if (makes === 'batch') return '404 batch_file_unknown'
      return billing === 'metered' || makes !== undefined
        ? '403 model_not_allowed'
        : '404 endpoint_not_metered'
    }
    const refused = ({ status, code }: Answer, endpoint: Endpoint) =>
      `${status} ${code}` === expected(endpoint)
    assert.deepEqual(await odd(leading, key, refused), [])
  })
})

test('a free endpoint with a model outside the allowlist is refused too', async () => {
  const key = await withKey({ allowed_models: ['gpt-6-luna'] })
  const naming = endpoints.filter(
    ({ billing, model }) => billing === 'free' && ['json', 'path'].includes(model),
  )
  assert.ok(naming.length > 5)
  await nothingSent(async () => {
    assert.deepEqual(await odd(naming, key, ({ status }) => status === 403), [])
  })
})

test('videos, Assistants and live sessions are 404 for limited keys, and forwarded and flagged for others', async () => {
  const dead = billable.filter(({ template }) =>
    /^\/v1\/(?:videos|assistants|threads|live)(?:\/|$)/.test(template),
  )
  assert.equal(dead.length, 19)
  const listed = await withKey({ allowed_models: ['gpt-6-luna'] })
  const capped = await withKey({ monthly_budget_usd: 5 })
  await nothingSent(async () => {
    const refused = ({ status, code }: Answer) => status === 404 && code === 'endpoint_not_metered'
    for (const key of [listed, capped]) assert.deepEqual(await odd(dead, key, refused), [])
  })
  const { id, key } = await gateway.createKey('open')
  assert.deepEqual(await odd(dead, key, ({ status }) => status === 200), [])
  const { data } = await gateway.manage('GET', `/v1/keys/${id}/requests?flag=unpriced`)
  assert.equal((data as unknown[]).length, dead.length)
})

const UNMETERED = new Set([
  'endpoint_not_metered',
  'model_not_priced',
  'minting_refused',
  'batch_file_unknown',
])

test('no billable endpoint is reached under a spent cap, and every metered one answers 402', async () => {
  const key = await withKey({ monthly_budget_usd: 0 })
  await nothingSent(async () => {
    // An unmeterable endpoint is refused to any capped key before its budget is checked.
    const refused = ({ status, code }: Answer, { billing }: Endpoint) =>
      (status === 402 && code === 'budget_exceeded') ||
      (billing !== 'metered' && status === 404 && UNMETERED.has(code ?? ''))
    assert.deepEqual(await odd(billable, key, refused), [])
  })
})

test('a spent cap does not affect free endpoints', async () => {
  const key = await withKey({ monthly_budget_usd: 0 })
  const free = endpoints.filter(({ billing }) => billing === 'free')
  assert.deepEqual(await odd(free, key, ({ status }) => status === 200), [])
})

test('an unlisted path is refused under an allowlist, and under a cap unless it only reads', async () => {
  const listed = await withKey({ allowed_models: ['gpt-6-luna'] })
  const capped = await withKey({ monthly_budget_usd: 5 })
  const unknown = ['/v1/brand-new', '/v1/convers%61tions', '/v1/Models', '/v1/files;a', '/v2/responses']
  const ask = async (method: string, path: string, key: string) => {
    const response = await fetch(gateway.url + path, { method, headers: headersFor('chat', key) })
    const { error } = (await response.json()) as { error: { code: string } }
    return `${response.status} ${error.code}`
  }
  const refused = '404 endpoint_not_metered'
  await nothingSent(async () => {
    for (const path of unknown) {
      for (const method of ['GET', 'POST', 'PUT'])
        assert.equal(await ask(method, path, listed), refused, path)
      for (const method of ['POST', 'PUT']) assert.equal(await ask(method, path, capped), refused, path)
    }
  })
})
