import assert from 'node:assert/strict'
import { inflateRawSync, inflateSync } from 'node:zlib'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { createRequestReader } from '../../src/providers/read-request.ts'
import { modelAsked } from '../../src/providers/request-members.ts'
import { test } from '../support/suite.ts'
import { deflatedTwice } from './deflated-twice.ts'
import { type Body, factsOf, form } from './request-facts-of.ts'

const messages = findEndpoint('messages', 'POST', '/v1/messages')
const edits = findEndpoint('chat', 'POST', '/v1/images/edits')
const transcriptions = findEndpoint('chat', 'POST', '/v1/audio/transcriptions')
const batches = findEndpoint('messages', 'POST', '/v1/messages/batches')
const responses = findEndpoint('chat', 'POST', '/v1/responses')

const twoFields = form({ model: 'a' })
twoFields.append('model', 'b')

const cases: readonly [what: string, endpoint: typeof messages, body: Body, sentence: string | null][] = [
  ['a clear body', messages, { model: 'a', tools: [{ name: 'f' }] }, null],
  ['a clear form', edits, form({ model: 'a' }), null],
  [
    'an object in a form, as SDKs write it',
    transcriptions,
    form({
      ...{ model: 'a', 'chunking_strategy[type]': 'server_vad', 'chunking_strategy[threshold]': '0.5' },
      ...{ 'chunking_strategy[prefix_padding_ms]': '300', 'chunking_strategy[silence_duration_ms]': '200' },
    }),
    null,
  ],
  ['a clear batch', batches, { requests: [{ params: { model: 'a' } }] }, null],
  ['a request without a model', messages, {}, null],
  ['a model that is no name', messages, { model: 7 }, null],
  ['two models', messages, '{"model":"a","model":"a"}', 'The member "model" is given twice. Send it once.'],
  [
    'two stream flags',
    messages,
    '{"stream":true,"str\\u0065am":false}',
    'The member "stream" is given twice. Send it once.',
  ],
  ['two members that nobody reads', messages, '{"x":1,"x":2}', null],
  [
    'two models of a tool',
    messages,
    '{"tools":[{"model":"a","model":"b"}]}',
    'The member "model" is given twice. Send it once.',
  ],
  [
    'two models of an item',
    responses,
    '{"input":[{"tools":[{"model":"a","model":"b"}]}]}',
    'The member "model" is given twice. Send it once.',
  ],
  [
    'two models of an entry',
    batches,
    '{"requests":[{"params":{"model":"a","model":"b"}}]}',
    'The member "model" is given twice. Send it once.',
  ],
  ['two fields', edits, twoFields, 'The field "model" is given twice. Send it once.'],
  ['no JSON', messages, 'x', 'The body cannot be read: it is not JSON.'],
  ['half a JSON text', messages, '{"model":', 'The body cannot be read: it ends too early.'],
  [
    'a name in another case',
    messages,
    '{"Model":"a"}',
    'The body cannot be read: some parsers read one of its names as another.',
  ],
  [
    'such a name in an entry',
    batches,
    '{"requests":[{"params":{"Model":"a"}}]}',
    'The body cannot be read: some parsers read one of its names as another.',
  ],
]
for (const [what, endpoint, body, sentence] of cases) {
  test(`${what}: ${sentence === null ? 'nothing is ambiguous' : 'said in a sentence'}`, async () => {
    assert.equal((await factsOf(endpoint, body)).ambiguity?.detail ?? null, sentence)
  })
}

for (const [type, sentence] of [
  [
    'application/x-www-form-urlencoded',
    'The body cannot be read: its content type is that of a form; send application/json.',
  ],
  [
    'application/json; charset=utf-16',
    'The body cannot be read: its content type names a charset other than UTF-8.',
  ],
] as const) {
  test(`a body that is said to be ${type} is ambiguous`, async () => {
    assert.deepEqual((await factsOf(messages, { model: 'a', x: ';model=b;' }, type)).ambiguity, {
      detail: sentence,
      refuse: 'limited',
    })
  })
}

test('a form with a charset of its own is ambiguous', async () => {
  const whole = new Response(form({ model: 'a' }))
  const type = `${whole.headers.get('content-type')}; charset=utf-16`
  const facts = await factsOf(edits, await whole.text(), type)
  assert.equal(facts.kind, 'form')
  assert.match(facts.ambiguity?.detail ?? '', /other than UTF-8/)
})

test('bytes that are one request to those who know the header of deflate and another to the rest are ambiguous', async () => {
  assert.ok(messages)
  const head = { contentType: 'application/json', contentEncoding: 'deflate' }
  const reader = createRequestReader(messages, head)
  const body = deflatedTwice()
  assert.equal(JSON.parse(inflateSync(body).toString()).model, 'a')
  assert.equal(JSON.parse(inflateRawSync(body).toString()).model, 'b')
  await reader.write(body)
  const facts = await reader.end()
  assert.equal(modelAsked(facts), 'a')
  assert.match(facts.ambiguity?.detail ?? '', /deflate is ambiguous/)
})
