import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'

/** Vector stores are paid by the day, and no reply tells their cost. */

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, chatKey: 'pc' })
after(async () => {
  await gateway.close()
  await upstream.close()
})
const { key: capped } = await gateway.createKey('capped', { monthly_budget_usd: 5 })
const { key: spent } = await gateway.createKey('spent', { monthly_budget_usd: 0 })
const { key: listed } = await gateway.createKey('listed', { allowed_models: ['gpt-6-luna'] })

const PATHS = [
  '/v1/threads',
  '/v1/threads/thread_1',
  '/v1/threads/thread_1/messages',
  '/v1/assistants',
  '/v1/assistants/asst_1',
]
const M = '"model":"gpt-6-luna"'
const PADDING = ' '.repeat(256 * 1024)

const plain: Record<string, string> = {
  nothing: `{${M}}`,
  'messages and tools': `{${M},"messages":[{"role":"user","content":"vector_stores"}],"tools":[{"type":"file_search"}]}`,
  'resources null': `{${M},"tool_resources":null}`,
  'no resources': `{${M},"tool_resources":{}}`,
  'files of the interpreter': `{${M},"tool_resources":{"code_interpreter":{"file_ids":["f"]}}}`,
  'stores that exist': `{${M},"tool_resources":{"file_search":{"vector_store_ids":["vs_1"]}}}`,
  'stores null': `{${M},"tool_resources":{"file_search":{"vector_stores":null}}}`,
  'an empty list of stores': `{${M},"tool_resources":{"file_search":{"vector_stores":[]}}}`,
  'stores somewhere else': `{${M},"metadata":{"tool_resources":{"file_search":{"vector_stores":[{}]}}}}`,
}

const creating: Record<string, string> = {
  'a store': `{${M},"tool_resources":{"file_search":{"vector_stores":[{"file_ids":["f"]}]}}}`,
  'a store of nothing': `{${M},"tool_resources":{"file_search":{"vector_stores":[{}]}}}`,
  'beside others': `{${M},"tool_resources":{"code_interpreter":{"file_ids":[]},"file_search":{"vector_store_ids":[],"vector_stores":[{}]}}}`,
  'in escapes': `{${M},"tool\\u005fresources":{"file\\u005fsearch":{"vector\\u005fstores":[{}]}}}`,
  'attached to a message': `{${M},"role":"user","content":"x","attachments":[{"file_id":"f","tools":[{"type":"file_search"}]}]}`,
  'attached to a message of a thread': `{${M},"messages":[{"role":"user","content":"x","attach\\u006dents":[{"file_id":"f"}]}]}`,
  'not in a list': `{${M},"tool_resources":{"file_search":{"vector_stores":{"file_ids":["f"]}}}}`,
  'behind much': `{${M},"tool_resources":{"x":"${PADDING}","file_search":{"vector_stores":[{}]}}}`,
}

/** Bodies that are refused to limited keys as ambiguous, and flagged for other keys. */
const ambiguous: Record<string, string> = {
  'resources twice': `{${M},"tool_resources":{},"tool_resources":{"file_search":{"vector_stores":[{}]}}}`,
  'stores twice': `{${M},"tool_resources":{"file_search":{"vector_stores":[],"vector_stores":[{}]}}}`,
  'another case': `{${M},"tool_resources":{"file_search":{"Vector_Stores":[{}]}}}`,
  'another case above': `{${M},"Tool_Resources":{"file_search":{"vector_stores":[{}]}}}`,
  'a NUL': `{${M},"tool_resources":{"file_search":{"vector_stores\\u0000":[{}]}}}`,
  'a byte order mark': `\ufeff{${M},"tool_resources":{"file_search":{"vector_stores":[{}]}}}`,
}

async function post(path: string, body: string | Uint8Array<ArrayBuffer>, key: string, coding?: string) {
  const before = upstream.requestCount
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(coding === undefined ? {} : { 'content-encoding': coding }),
    },
    body,
  })
  const text = await response.text()
  const error = response.status === 200 ? null : JSON.parse(text).error
  return {
    status: response.status,
    error,
    id: response.headers.get('x-svc-request-id') ?? '',
    reached: upstream.requestCount - before,
  }
}

const flagOf = async (id: string) => (await gateway.manage('GET', `/gateway/v1/requests/${id}`))['unpriced']

for (const path of PATHS) {
  test(`POST ${path} without new vector stores is free, to every key`, async () => {
    for (const [what, body] of Object.entries(plain)) {
      for (const key of [gateway.apiKey, capped, spent, listed]) {
        const { status, id, reached } = await post(path, body, key)
        assert.deepEqual([status, reached], [200, 1], what)
        assert.equal(await flagOf(id), false, what)
      }
    }
  })

  test(`POST ${path} that creates vector stores is refused to a key with a cap, and flagged for one without`, async () => {
    for (const [what, body] of Object.entries(creating)) {
      for (const key of [capped, spent]) {
        const { status, error, reached } = await post(path, body, key)
        assert.deepEqual([status, error?.code, reached], [404, 'endpoint_not_metered', 0], what)
        assert.equal(error.param, body.includes('attach') ? 'attachments' : 'tool_resources')
        assert.match(error.message, new RegExp(`"${error.param}"`))
      }
      const { status, id, reached } = await post(path, body, gateway.apiKey)
      assert.deepEqual([status, reached], [200, 1], what)
      assert.equal(await flagOf(id), true, what)
    }
  })

  test(`POST ${path} with a body that can be read in two ways cannot create one unseen`, async () => {
    for (const [what, body] of Object.entries(ambiguous)) {
      const refused = await post(path, body, capped)
      assert.deepEqual([refused.status, refused.error?.code, refused.reached], [400, 'bad_request', 0], what)
      const { status, id } = await post(path, body, gateway.apiKey)
      assert.equal(status, 200, what)
      assert.equal(await flagOf(id), true, what)
    }
  })
}

test('compressed bodies are looked into as well', async () => {
  const body = new Uint8Array(gzipSync(creating['a store'] ?? ''))
  assert.equal((await post('/v1/threads', body, capped, 'gzip')).error?.code, 'endpoint_not_metered')
  assert.equal(await flagOf((await post('/v1/threads', body, gateway.apiKey, 'gzip')).id), true)
})

test('a thread without a body is free', async () => {
  const response = await fetch(`${gateway.url}/v1/threads`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spent}` },
  })
  assert.equal(response.status, 200)
})

test('a run that makes stores is refused to a key with a cap, whatever brings them', async () => {
  const resources = '"tool_resources":{"file_search":{"vector_stores":[{}]}}'
  const attached = '[{"role":"user","content":"x","attachments":[{"file_id":"f"}]}]'
  const bodies = [
    `{${M},${resources}}`,
    `{${M},"thread":{${resources}}}`,
    `{${M},"thread":{"x":"${PADDING}",${resources}}}`,
    `{${M},"thread":{"messages":${attached}}}`,
    `{${M},"additional_messages":${attached}}`,
  ]
  for (const body of bodies)
    for (const path of ['/v1/threads/runs', '/v1/threads/thread_1/runs']) {
      const { error, reached } = await post(path, body, capped)
      assert.deepEqual([error?.code, reached], ['endpoint_not_metered', 0], body.slice(0, 100))
    }
  const plain = `{${M},"thread":{"messages":[],"tool_resources":{"file_search":{"vector_store_ids":["vs"]}}}}`
  assert.equal((await post('/v1/threads/runs', plain, capped)).reached, 1)
})
