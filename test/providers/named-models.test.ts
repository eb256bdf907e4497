import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { type ModelsCase, testCase, testModels } from './models-case.ts'
import { type Body, form, modelsOf } from './request-facts-of.ts'

const LONG = 'm'.repeat(257)
const image = new Blob(['x'], { type: 'image/png' })

const MESSAGES = 'POST /v1/messages'
const RESPONSES = 'POST /v1/responses'

testModels(String.raw`
messages POST /v1/messages
  a model | {"model":"a","max_tokens":1} | = a
  a model with escapes | {"\u006dodel":"\u0061\u00e4"} | = aä
  no model on a paid endpoint | {"max_tokens":1} | ~ names no model
  no body on a paid endpoint | - | ~ names no model
  a list for a model | {"model":["a"]} | ~ "model" is not a model name
  a number for a model | {"model":1} | ~ "model" is not a model name
  an object for a model, where it is a string | {"model":{"id":"a"}} | ~ "model" is not a model name
  two models | {"model":"a","model":"b"} | ~ "model" is given twice
  a body that is no JSON | model=a | ~ not JSON
  the shape of an answer | {"model":"a","output_format":{"type":"json_schema"}} | = a
chat POST /v1/responses
  null for a model | {"model":null} | ~ names no model
  a stored prompt | {"model":"a","prompt":{"id":"pmpt_1"}} | ~ stored prompt
chat POST /v1/moderations
  no model on a free endpoint | {"input":"x"} | =
  no body on a free endpoint | - | =
  a model on a free endpoint | {"model":"omni"} | = omni
  a model that is none on a free endpoint | {"model":7} | ~ "model" is not a model name
  an unreadable body on a free endpoint | { | ~ is incomplete
messages POST /v1/messages/count_tokens
  counting tokens | {"model":"a"} | = a
messages POST /v1/agents
  an agent with its model as an object | {"model":{"id":"a"}} | ~ "model" is not a model name
messages POST /v1/agents/ag_1
  an agent with its model as a string | {"model":"a"} | = a
messages POST /v1/dreams
  a dream without a model | {"inputs":[]} | ~ names no model
chat POST /v1/completions
  a prompt of text | {"model":"a","prompt":"x"} | = a
  a prompt of tokens | {"model":"a","prompt":[1,2]} | = a
chat POST /v1/chat/completions
  moderation by a model | {"model":"a","moderation":{"model":"b"}} | = a, b
  moderation by nobody knows what | {"model":"a","moderation":{"model":5}} | ~ "moderation" is not a model name
chat POST /v1/images/generations
  moderation of images, which is a word | {"model":"a","moderation":"low"} | = a
  an SVG | {"model":"a","output_format":"svg","svg":{"model":"b"}} | = a, b
  an SVG by whom upstream chooses | {"model":"a","output_format":"svg"} | ~ writes the SVG
  an image without a model | {"prompt":"x"} | ~ names no model
chat POST /v1/fine_tuning/jobs
  fine-tuning | {"model":"a","method":{"type":"supervised"}} | = a
chat POST /v1/images/edits
  JSON where forms are usual | {"model":"a","images":[]} | = a
  JSON without a model where forms are usual | {} | ~ names no model
messages GET /v1/models/claude-x
  a model in the path | - | = claude-x
chat HEAD /v1/models/gpt-x
  a model in the path of a HEAD | - | = gpt-x
chat WS /v1/realtime?model=gpt-realtime
  a model in the query | - | = gpt-realtime
chat WS /v1/realtime?x=1&mod%65l=ft%3Aa
  a model in the query with escapes | - | = ft:a
chat WS /v1/realtime
  no model in the query | - | ~ query does not name
chat WS /v1/realtime?model=a&model=a
  two models in the query | - | ~ query does not name
chat WS /v1/realtime?model=a&call_id=c
  a call that is joined | - | ~ query does not name
chat POST /v1/batches
  a batch of a file | {"endpoint":"/v1/responses"} | ~ input file
  a batch of two files | {"input_file_id":"a","input_file_id":"b"} | ~ "input_file_id" is given twice
  a batch of a number | {"input_file_id":1} | ~ input file
  a batch of an empty name | {"input_file_id":""} | ~ input file
  a batch without a body | - | ~ input file
chat POST /v1/chat/completions2
  a path that is not in the table | {"model":"a"} | ~ does not know this endpoint
messages PUT /v1/messages
  a method that is not in the table | {"model":"a"} | ~ does not know this endpoint
messages HEAD /v1/messages
  HEAD of what has no GET | - | ~ does not know this endpoint
messages HEAD /v1/models
  HEAD of what has a GET | - | =
messages POST /v1/sessions
  a session | - | ~ cannot tell which models
chat POST /v1/fine_tuning/alpha/graders/run
  a grader | {"grader":{"model":"a"}} | ~ cannot tell which models
chat POST /v1/fine_tuning/alpha/graders/validate
  a grader that is only validated | {"grader":{"model":"a"}} | ~ cannot tell which models
chat POST /v1/evals
  an eval, whose graders name models | {"testing_criteria":[{"type":"label_model","model":"a"}]} | ~ cannot tell which models
chat POST /v1/agents/sessions/sess_1
  a session whose model changes | {"agent":{"model":"a"}} | ~ cannot tell which models
chat POST /v1/realtime/sessions
  a credential | {"model":"a"} | ~ credential
messages POST /v1/oauth/token
  a credential where no model is named | - | ~ credential
chat POST /v1/files
  a file | - | =
chat POST /v1/containers
  a paid endpoint without a model | - | =
`)

const cases: readonly ModelsCase[] = [
  ['an overlong name', 'messages', MESSAGES, { model: LONG }, /"model" is not a model name/],
  ['a form instead of JSON', 'messages', MESSAGES, form({ model: 'a' }), /is a form/],
  [
    'a stored prompt that is long',
    'chat',
    RESPONSES,
    { model: 'a', prompt: { id: 'p', variables: { x: 'y'.repeat(300_000) } } },
    /stored prompt/,
  ],
  ['a form', 'chat', 'POST /v1/audio/transcriptions', form({ model: 'a', file: image }), ['a']],
  [
    'a form without a model',
    'chat',
    'POST /v1/audio/transcriptions',
    form({ file: image }),
    /names no model/,
  ],
  [
    'a form with a long model',
    'chat',
    'POST /v1/images/edits',
    form({ model: 'm'.repeat(2000) }),
    /"model" is not a model name/,
  ],
]

for (const one of cases) testCase(one)

test('a batch of an uploaded file names the file', async () => {
  const { names, unknown, batchFile } = await modelsOf('chat', 'POST /v1/batches', {
    input_file_id: 'file-abc',
    endpoint: '/v1/chat/completions',
  })
  assert.deepEqual({ names, unknown, batchFile }, { names: [], unknown: null, batchFile: 'file-abc' })
})

test('readable models are named even if others are unknown, so that the allowlist can refuse them', async () => {
  const { names } = await modelsOf('messages', MESSAGES, {
    model: 'a',
    fallbacks: 'default',
    tools: [{ model: 'b' }],
  })
  assert.deepEqual(names, ['a', 'b'])
})

test('upstream’s default model counts as named only if the request names none', async () => {
  const drawn = (body: Body) => modelsOf('chat', 'POST /v1/images/generations', body, undefined, 'd')
  const known = { unknown: null, batchFile: null }
  for (const left of [{ prompt: 'x' }, { prompt: 'x', model: null }, null])
    assert.deepEqual(await drawn(left), { names: ['d'], ...known })
  assert.deepEqual(await drawn({ prompt: 'x', model: 'a' }), { names: ['a'], ...known })
  for (const model of [7, {}, [], LONG])
    assert.match((await drawn({ prompt: 'x', model })).unknown ?? '', /"model" is not a model name/)
  assert.match((await drawn({ prompt: { id: 'p' } })).unknown ?? '', /stored prompt/)
  assert.match((await drawn('{')).unknown ?? '', /is incomplete/)
  const edited = await modelsOf('chat', 'POST /v1/images/edits', form({ prompt: 'x', image }), undefined, 'd')
  assert.deepEqual(edited, { names: ['d'], ...known })
})
