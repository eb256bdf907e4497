import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { type ModelsCase, testModels } from './models-case.ts'
import { type Body, form, modelsOf } from './request-facts-of.ts'

const LONG = 'm'.repeat(257)
const image = new Blob(['x'], { type: 'image/png' })

const MESSAGES = 'POST /v1/messages'
const RESPONSES = 'POST /v1/responses'

const cases: readonly ModelsCase[] = [
  // The member "model" of a JSON body.
  ['a model', 'messages', MESSAGES, { model: 'a', max_tokens: 1 }, ['a']],
  ['a model with escapes', 'messages', MESSAGES, '{"\\u006dodel":"\\u0061\\u00e4"}', ['aä']],
  ['no model on a paid endpoint', 'messages', MESSAGES, { max_tokens: 1 }, /names no model/],
  ['no body on a paid endpoint', 'messages', MESSAGES, null, /names no model/],
  ['null for a model', 'chat', RESPONSES, { model: null }, /names no model/],
  ['a list for a model', 'messages', MESSAGES, { model: ['a'] }, /"model" cannot be read/],
  ['a number for a model', 'messages', MESSAGES, { model: 1 }, /"model" cannot be read/],
  [
    'an object for a model, where it is a string',
    'messages',
    MESSAGES,
    { model: { id: 'a' } },
    /"model" cannot be read/,
  ],
  ['a name longer than any model has', 'messages', MESSAGES, { model: LONG }, /"model" cannot be read/],
  ['two models', 'messages', MESSAGES, '{"model":"a","model":"b"}', /"model" is given twice/],
  ['a body that is no JSON', 'messages', MESSAGES, 'model=a', /not JSON/],
  ['a form where JSON is read', 'messages', MESSAGES, form({ model: 'a' }), /is a form/],
  ['no model on a free endpoint', 'chat', 'POST /v1/moderations', { input: 'x' }, []],
  ['no body on a free endpoint', 'chat', 'POST /v1/moderations', null, []],
  ['a model on a free endpoint', 'chat', 'POST /v1/moderations', { model: 'omni' }, ['omni']],
  [
    'a model that is none on a free endpoint',
    'chat',
    'POST /v1/moderations',
    { model: 7 },
    /"model" cannot be read/,
  ],
  ['an unreadable body on a free endpoint', 'chat', 'POST /v1/moderations', '{', /ends too early/],
  ['counting tokens', 'messages', 'POST /v1/messages/count_tokens', { model: 'a' }, ['a']],
  [
    'an agent with its model as an object',
    'messages',
    'POST /v1/agents',
    { model: { id: 'a', speed: 'fast' } },
    ['a'],
  ],
  ['an agent with its model as a string', 'messages', 'POST /v1/agents/ag_1', { model: 'a' }, ['a']],
  [
    'an agent with an object that has no id',
    'messages',
    'POST /v1/agents',
    { model: { name: 'a' } },
    /"model" cannot/,
  ],
  [
    'an agent with two ids',
    'messages',
    'POST /v1/agents',
    '{"model":{"id":"a","id":"b"}}',
    /"id" is given twice/,
  ],
  ['a dream', 'messages', 'POST /v1/dreams', { model: { id: 'a' }, inputs: [] }, ['a']],
  ['a dream without a model', 'messages', 'POST /v1/dreams', { inputs: [] }, /names no model/],

  // Other members that name a model, or lead to one.
  ['a stored prompt', 'chat', RESPONSES, { model: 'a', prompt: { id: 'pmpt_1' } }, /stored prompt/],
  [
    'a stored prompt that is long',
    'chat',
    RESPONSES,
    { model: 'a', prompt: { id: 'p', variables: { x: 'y'.repeat(300_000) } } },
    /stored prompt/,
  ],
  ['a prompt of text', 'chat', 'POST /v1/completions', { model: 'a', prompt: 'x' }, ['a']],
  ['a prompt of tokens', 'chat', 'POST /v1/completions', { model: 'a', prompt: [1, 2] }, ['a']],
  [
    'moderation by a model',
    'chat',
    'POST /v1/chat/completions',
    { model: 'a', moderation: { model: 'b' } },
    ['a', 'b'],
  ],
  [
    'moderation by nobody knows what',
    'chat',
    'POST /v1/chat/completions',
    { model: 'a', moderation: { model: 5 } },
    /"moderation" cannot/,
  ],
  [
    'moderation of images, which is a word',
    'chat',
    'POST /v1/images/generations',
    { model: 'a', moderation: 'low' },
    ['a'],
  ],
  [
    'an SVG',
    'chat',
    'POST /v1/images/generations',
    { model: 'a', output_format: 'svg', svg: { model: 'b' } },
    ['a', 'b'],
  ],
  [
    'an SVG by whom upstream chooses',
    'chat',
    'POST /v1/images/generations',
    { model: 'a', output_format: 'svg' },
    /writes the SVG/,
  ],
  ['an image without a model', 'chat', 'POST /v1/images/generations', { prompt: 'x' }, /names no model/],
  [
    'the shape of an answer',
    'messages',
    MESSAGES,
    { model: 'a', output_format: { type: 'json_schema' } },
    ['a'],
  ],
  ['fine-tuning', 'chat', 'POST /v1/fine_tuning/jobs', { model: 'a', method: { type: 'supervised' } }, ['a']],

  // Forms.
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
    /"model" cannot be read/,
  ],
  ['JSON where forms are usual', 'chat', 'POST /v1/images/edits', { model: 'a', images: [] }, ['a']],
  ['JSON without a model where forms are usual', 'chat', 'POST /v1/images/edits', {}, /names no model/],

  // Path and query.
  ['a model in the path', 'messages', 'GET /v1/models/claude-x', null, ['claude-x']],
  ['a model in the path of a HEAD', 'chat', 'HEAD /v1/models/gpt-x', null, ['gpt-x']],
  ['a model in the query', 'chat', 'WS /v1/realtime?model=gpt-realtime', null, ['gpt-realtime']],
  ['a model in the query with escapes', 'chat', 'WS /v1/realtime?x=1&mod%65l=ft%3Aa', null, ['ft:a']],
  ['no model in the query', 'chat', 'WS /v1/realtime', null, /query does not name/],
  ['two models in the query', 'chat', 'WS /v1/realtime?model=a&model=a', null, /query does not name/],
  ['a call that is joined', 'chat', 'WS /v1/realtime?model=a&call_id=c', null, /query does not name/],

  // Files of requests.
  ['a batch of a file', 'chat', 'POST /v1/batches', { endpoint: '/v1/responses' }, /which file/],
  [
    'a batch of two files',
    'chat',
    'POST /v1/batches',
    '{"input_file_id":"a","input_file_id":"b"}',
    /"input_file_id" is given twice/,
  ],
  ['a batch of a number', 'chat', 'POST /v1/batches', { input_file_id: 1 }, /which file/],
  ['a batch of an empty name', 'chat', 'POST /v1/batches', { input_file_id: '' }, /which file/],
  ['a batch without a body', 'chat', 'POST /v1/batches', null, /which file/],

  // Requests whose models cannot be known, and requests without models.
  [
    'a path that is not in the table',
    'chat',
    'POST /v1/chat/completions2',
    { model: 'a' },
    /not one that the gateway knows/,
  ],
  [
    'a method that is not in the table',
    'messages',
    'PUT /v1/messages',
    { model: 'a' },
    /not one that the gateway knows/,
  ],
  ['HEAD of what has no GET', 'messages', 'HEAD /v1/messages', null, /not one that the gateway knows/],
  ['HEAD of what has a GET', 'messages', 'HEAD /v1/models', null, []],
  ['a session', 'messages', 'POST /v1/sessions', null, /where it is not looked for/],
  [
    'a grader',
    'chat',
    'POST /v1/fine_tuning/alpha/graders/run',
    { grader: { model: 'a' } },
    /does not read them/,
  ],
  [
    'a grader that is only validated',
    'chat',
    'POST /v1/fine_tuning/alpha/graders/validate',
    { grader: { model: 'a' } },
    /does not read them/,
  ],
  ['a credential', 'chat', 'POST /v1/realtime/sessions', { model: 'a' }, /credential/],
  ['a credential where no model is named', 'messages', 'POST /v1/oauth/token', null, /credential/],
  ['a file', 'chat', 'POST /v1/files', null, []],
  ['a paid endpoint without a model', 'chat', 'POST /v1/containers', null, []],
]

for (const one of cases) testModels(one)

test('a batch of an uploaded file names the file', async () => {
  const { names, unknown, batchFile } = await modelsOf('chat', 'POST /v1/batches', {
    input_file_id: 'file-abc',
    endpoint: '/v1/chat/completions',
  })
  assert.deepEqual({ names, unknown, batchFile }, { names: [], unknown: null, batchFile: 'file-abc' })
})

test('what can be read is named even where more is unknown, so that a stranger among them is told by name', async () => {
  const { names } = await modelsOf('messages', MESSAGES, {
    model: 'a',
    fallbacks: 'default',
    tools: [{ model: 'b' }],
  })
  assert.deepEqual(names, ['a', 'b'])
})

for (const type of [
  'application/x-www-form-urlencoded',
  'multipart/mixed; boundary=x',
  'text/plain, multipart/form-data; boundary=x',
]) {
  test(`a body that is JSON and could be read as ${type} names no model beyond doubt`, async () => {
    const body = '{"model":"a","x":"&model=b&"}'
    const { unknown } = await modelsOf('chat', 'POST /v1/images/edits', body, type)
    assert.match(unknown ?? '', /content type/)
  })
}

test('a model that upstream takes by itself counts as named where none is, and nowhere else', async () => {
  const drawn = (body: Body) => modelsOf('chat', 'POST /v1/images/generations', body, undefined, 'd')
  const known = { unknown: null, batchFile: null }
  for (const left of [{ prompt: 'x' }, { prompt: 'x', model: null }, null])
    assert.deepEqual(await drawn(left), { names: ['d'], ...known })
  assert.deepEqual(await drawn({ prompt: 'x', model: 'a' }), { names: ['a'], ...known })
  for (const model of [7, {}, [], LONG])
    assert.match((await drawn({ prompt: 'x', model })).unknown ?? '', /"model" cannot be read/)
  assert.match((await drawn({ prompt: { id: 'p' } })).unknown ?? '', /stored prompt/)
  assert.match((await drawn('{')).unknown ?? '', /ends too early/)
  const edited = await modelsOf('chat', 'POST /v1/images/edits', form({ prompt: 'x', image }), undefined, 'd')
  assert.deepEqual(edited, { names: ['d'], ...known })
})
