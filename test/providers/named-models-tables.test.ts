import assert from 'node:assert/strict'
import type { NamedModels } from '../../src/kernel/vocabulary.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints, findEndpoint } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'
import { type Body, form, modelsOf } from './request-facts-of.ts'

const MODEL = 'the-model'

/** The target of a request to the endpoint, with the model in its path. */
function targetOf({ method, template }: Endpoint): string {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'model' ? MODEL : 'x1'))
  return `${method} ${path}`
}

const naming: Record<string, Body> = {
  'a JSON body': {
    model: MODEL,
    requests: [{ custom_id: '1', params: { model: MODEL } }],
    input_file_id: MODEL,
    session: { model: MODEL },
    grader: { model: MODEL },
  },
  'a form': form({ model: MODEL, session: `{"model":"${MODEL}"}` }),
}

const silent: Record<string, Body> = {
  'no body': null,
  'an empty body': '',
  'an empty object': {},
  'an empty form': form({ a: 'b' }),
  'a body that is no JSON': 'model=x',
  'null for every name': { model: null, requests: null, input_file_id: null },
}

function says({ names, batchFile }: NamedModels): readonly string[] {
  return batchFile === null ? names : [...names, batchFile]
}

const billable = allEndpoints().filter(({ billing }) => billing !== 'free')
const leading = billable.filter(({ billing, model }) => billing === 'mints_credential' || model !== 'none')

test('paths of every template find their endpoint, so that what follows is about it', () => {
  for (const endpoint of allEndpoints()) {
    const [method = '', path = ''] = targetOf(endpoint).split(' ')
    assert.equal(findEndpoint(endpoint.surface, method, path), endpoint)
  }
  assert.ok(leading.length > 60)
})

for (const [what, body] of Object.entries(silent)) {
  test(`no paid endpoint takes ${what} for a request without models`, async () => {
    for (const endpoint of leading) {
      // The body is tried on every endpoint, also a form where JSON is usual and the other way round.
      const { unknown } = await modelsOf(endpoint.surface, targetOf(endpoint), body)
      assert.notEqual(unknown, null, `${endpoint.surface} ${targetOf(endpoint)}`)
    }
  })
}

for (const [what, body] of Object.entries(naming)) {
  test(`every paid endpoint names the model that ${what}, the path or the query gives, or says that it cannot`, async () => {
    const found = new Set<string>()
    for (const endpoint of leading) {
      const named = await modelsOf(endpoint.surface, `${targetOf(endpoint)}?model=${MODEL}`, body)
      const request = `${endpoint.surface} ${targetOf(endpoint)}: ${JSON.stringify(named)}`
      assert.ok(says(named).includes(MODEL) || named.unknown !== null, request)
      if (says(named).includes(MODEL)) found.add(endpoint.model)
    }
    const expected =
      body instanceof FormData
        ? ['multipart', 'query']
        : ['batch_entries', 'batch_file', 'json', 'multipart', 'query']
    assert.deepEqual([...found].sort(), expected)
  })
}

test('a model that a free endpoint is given is named', async () => {
  const free = allEndpoints().filter(
    ({ billing, model }) => billing === 'free' && ['json', 'path'].includes(model),
  )
  assert.ok(free.length > 10)
  for (const endpoint of free) {
    const body = endpoint.reads === 'nothing' ? null : { model: MODEL }
    const named = await modelsOf(endpoint.surface, targetOf(endpoint), body)
    assert.deepEqual(named, { names: [MODEL], unknown: null, batchFile: null }, targetOf(endpoint))
  }
})

for (const [what, body] of [...Object.entries(naming), ...Object.entries(silent)]) {
  test(`a free endpoint with models deep in ${what} says that it does not read them`, async () => {
    const free = allEndpoints().filter(({ billing, model }) => billing === 'free' && model === 'nested')
    assert.ok(free.length > 2)
    for (const endpoint of free) {
      const { unknown } = await modelsOf(endpoint.surface, targetOf(endpoint), body)
      assert.match(unknown ?? '', /does not read them/, targetOf(endpoint))
    }
  })
}

test('paid endpoints at which no model takes part are these', () => {
  const without = billable.filter((endpoint) => !leading.includes(endpoint))
  assert.deepEqual(without.map(targetOf), [
    'WS /v1/realtime/translations',
    'WS /v1/live/sessions',
    'WS /v1/live/sessions/x1/attach',
    'WS /v1/live/sessions/x1/fork',
    'POST /v1/containers',
    'POST /v1/vector_stores',
    'POST /v1/vector_stores/x1/file_batches',
    'POST /v1/vector_stores/x1/files',
    'POST /v1/vector_stores/x1/search',
    'POST /v1/videos',
    'POST /v1/videos/characters',
    'POST /v1/videos/edits',
    'POST /v1/videos/extensions',
    'POST /v1/videos/x1/remix',
    'POST /v1/assistants',
    'POST /v1/assistants/x1',
    'POST /v1/threads',
    'POST /v1/threads/runs',
    'POST /v1/threads/x1',
    'POST /v1/threads/x1/messages',
    'POST /v1/threads/x1/messages/x1',
    'POST /v1/threads/x1/runs',
    'POST /v1/threads/x1/runs/x1',
    'POST /v1/threads/x1/runs/x1/cancel',
    'POST /v1/threads/x1/runs/x1/submit_tool_outputs',
    'POST /v1/agents/environments',
  ])
})

test('what is not in the tables is never taken for a request without models', async () => {
  for (const endpoint of allEndpoints()) {
    for (const request of [`PUT ${targetOf(endpoint).split(' ')[1]}`, `${targetOf(endpoint)}/`]) {
      const { unknown } = await modelsOf(endpoint.surface, request, null)
      assert.notEqual(unknown, null, request)
    }
  }
})
