import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { NamedModels } from '../../src/kernel/model-names.ts'
import { NO_COST } from '../../src/kernel/money.ts'
import { BatchEntries } from '../../src/providers/batch-requests.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { namedModels } from '../../src/providers/named-models.ts'
import { PLAIN_JSON, RequestReader } from '../../src/providers/read-request.ts'
import { type ItemFacts, NO_ITEMS } from '../../src/providers/request-facts.ts'
import { pieceSizes } from '../metering/slices.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { type ModelsCase, testCase, testModels } from './models-case.ts'
import type { Body } from './request-facts-of.ts'

const entry = (params: unknown) => ({ custom_id: 'c', params })

testModels(String.raw`
messages POST /v1/messages/batches
  models of several entries, each once | {"requests":[{"params":{"model":"a"}},{"params":{"model":"b"}},{"params":{"model":"a"}}]} | = a, b
  fallbacks and tools of an entry | {"requests":[{"params":{"model":"a","fallbacks":[{"model":"b"},"c"],"tools":[{"model":"d"}]}}]} | = a, b, c, d
  a model that messages mention | {"requests":[{"params":{"model":"a","messages":[{"role":"user","content":"\"model\":\"b\"","model":"c"}]}}]} | = a
  members around the requests | {"model":"x","requests":[{"model":"y","custom_id":"c","params":{"model":"a"}}]} | = a
  an entry without a model | {"requests":[{"params":{"model":"a"}},{"params":{"max_tokens":1}}]} | ~ names no model
  an entry with a number for a model | {"requests":[{"params":{"model":1}}]} | ~ "model" (is not a model name|must)
  an entry with an object for a model | {"requests":[{"params":{"model":{"id":"a"}}}]} | ~ "model" (is not a model name|must)
  an entry without params | {"requests":[{"custom_id":"c"}]} | ~ "requests" (?:cannot|must)
  an entry with a list for params | {"requests":[{"params":[{"model":"a"}]}]} | ~ "requests" (?:cannot|must)
  an entry that is a string | {"requests":["a"]} | ~ "requests" (?:cannot|must)
  an entry with an unreadable tool | {"requests":[{"params":{"model":"a","tools":[{"model":{}}]}}]} | ~ "tools" is not a model name
  an entry with default fallbacks | {"requests":[{"params":{"model":"a","fallbacks":"default"}}]} | ~ Upstream chooses
  no requests | {} | ~ names no models
  an empty list of requests | {"requests":[]} | ~ names no models
  an object for requests | {"requests":{"params":{"model":"a"}}} | ~ names no models
  duplicate requests | {"requests":[{"params":{"model":"a"}}],"requests":[]} | ~ "requests" is given twice
  params twice | {"requests":[{"params":{"model":"a"},"params":{"model":"b"}}]} | ~ "params" is given twice
  a duplicate model | {"requests":[{"params":{"model":"a","model":"b"}}]} | ~ "model" is given twice
  a model twice, once with escapes | {"requests":[{"params":{"model":"a","m\u006fdel":"b"}}]} | ~ is given twice
  a tool with two models | {"requests":[{"params":{"model":"a","tools":[{"model":"a","model":"b"}]}}]} | ~ "model" is given twice
  a name that some parsers take for "model" | {"requests":[{"params":{"model":"a","MODEL":"b"}}]} | ~ read one of its member names differently
`)

const models = Array.from({ length: 201 }, (_, i) => `m${i}`)
const named = (names: readonly string[]) => ({ requests: names.map((model) => entry({ model })) })
const cases: readonly [what: string, body: Body, expected: ModelsCase[4]][] = [
  ['a model that is too long', named(['m'.repeat(257)]), /"model" (is not a model name|must)/],
  ['a control character in a model', '{"requests":[{"params":{"model":"a\u0001"}}]}', /not JSON/],
  ['as many models as are checked', named(models.slice(1)), models.slice(1)],
  ['more models than are checked', named(models), /more than 200/],
]
for (const [what, body, expected] of cases)
  testCase([`a batch with ${what}`, 'messages', 'POST /v1/messages/batches', body, expected])

const endpoint = findEndpoint('messages', 'POST', '/v1/messages/batches')

assert.ok(endpoint)
const BATCH = endpoint

async function read(
  text: string,
  sizes: readonly number[],
): Promise<NamedModels & { ambiguity: string | null; items: ItemFacts }> {
  const reader = new RequestReader(BATCH, PLAIN_JSON, new BatchEntries('messages', () => NO_COST))
  const bytes = Buffer.from(text)
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const piece = Buffer.from(bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1)))
    await reader.write(piece)
    at += piece.length
    piece.fill(0x22)
  }
  const facts = await reader.end()
  const models = namedModels(endpoint, '/v1/messages/batches', facts)
  return { ...models, ambiguity: facts.ambiguity?.detail ?? null, items: facts.items }
}

const name = fc.oneof(
  fc.constantFrom('a', 'claude-haiku-5-5', 'ä😀', '"\\'),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
)
const params = fc.record(
  {
    model: name,
    max_tokens: fc.integer(),
    messages: fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 3 }),
    fallbacks: fc.array(fc.oneof(name, fc.record({ model: name })), { maxLength: 2 }),
    tools: fc.array(
      fc.record({ type: fc.constantFrom('custom', 'advisor_1'), model: name, input_schema: fc.jsonValue() }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: ['model'] },
)

test('the models of any batch are those that JSON.parse finds, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(params, { minLength: 1, maxLength: 5 }), pieceSizes, async (list, sizes) => {
      const text = JSON.stringify({ requests: list.map(entry) })
      const expected = new Set<string>()
      for (const { model, fallbacks, tools } of list) {
        expected.add(model)
        for (const fallback of fallbacks ?? [])
          expected.add(typeof fallback === 'string' ? fallback : fallback.model)
        for (const tool of tools ?? []) expected.add(tool.model)
      }
      const whole = await read(text, [text.length * 4])
      const { items, ...named } = whole
      assert.deepEqual(named, { names: [...expected], unknown: null, batchFile: null, ambiguity: null })
      const models = { names: [...expected], unknown: null }
      assert.deepEqual(items, { ...NO_ITEMS, models, bound: { ...NO_COST, largestNanos: 0n } })
      assert.deepEqual(await read(text, sizes), whole)
    }),
    { numRuns: runs(300) },
  )
})

test('a duplicate member is found in every entry of a batch, in any chunks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(params, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      pieceSizes,
      async (list, nth, sizes) => {
        const entries = list.map((one) => JSON.stringify(entry(one)))
        const at = nth % entries.length
        entries[at] = (entries[at] ?? '').replace('"params":{', '"params":{"model":"first",')
        const found = await read(`{"requests":[${entries.join()}]}`, sizes)
        assert.equal(found.ambiguity, 'The member "model" is given twice. Send it once.')
        assert.equal(found.unknown, found.ambiguity)
      },
    ),
    { numRuns: runs(200) },
  )
})
