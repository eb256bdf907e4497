import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import {
  CHAT,
  content,
  EDITS,
  items,
  LONG,
  limitsOf,
  MESSAGES,
  RESPONSES,
  TRANSCRIPTIONS,
  tools,
} from './limits-of.ts'
import { type Body, form } from './request-facts-of.ts'

const elsewhere: readonly [what: string, path: string, body: Body][] = [
  ['an image by its address', MESSAGES, content({ type: 'image', source: { type: 'url', url: 'x' } })],
  ['an image by another name of its address', RESPONSES, items({ type: 'input_image', image_url: 'x' })],
  ['a file by its id', MESSAGES, content({ type: 'document', source: { type: 'file', file_id: 'f' } })],
  ['a document that it carries', MESSAGES, content({ source: { type: 'base64', data: 'JVBE' } })],
  ['a file that it carries', RESPONSES, items({ type: 'input_file', file_data: 'JVBE' })],
  ['a container', MESSAGES, { model: 'a', container: 'c' }],
  ['servers of tools', MESSAGES, { model: 'a', mcp_servers: [] }],
  [
    'a thread that goes on',
    MESSAGES,
    { model: 'a', thread: { type: 'continue', previous_message_id: 'msg_1' } },
  ],
  [
    'a thread that says of itself that it begins',
    MESSAGES,
    { model: 'a', thread: { type: 'create', previous_message_id: 'msg_1' } },
  ],
  ['a thread that is a text', MESSAGES, { model: 'a', thread: 'msg_1' }],
  ['a thread that is too long', MESSAGES, { model: 'a', thread: { type: 'create', x: LONG } }],
  ['an item by its id', RESPONSES, items({ role: 'user' }, { type: 'item_reference', id: 'msg_1' })],
  ['an item that is an id alone', RESPONSES, items({ id: 'msg_1' })],
  ['an item without a type', RESPONSES, items({ id: 'msg_1', type: null })],
  [
    'a message that is an id alone',
    RESPONSES,
    items({ id: 'msg_1', type: 'message', role: 'assistant', content: null }),
  ],
  ['reasoning that is an id', RESPONSES, items({ id: 'rs_1', type: 'reasoning', summary: [] })],
  ['reasoning that is empty', RESPONSES, items({ id: 'rs_1', type: 'reasoning', encrypted_content: '' })],
  ['an image that was drawn', RESPONSES, items({ type: 'image_generation_call', id: 'ig_1', result: null })],
  ['what a search found', RESPONSES, items({ type: 'file_search_call', id: 'fs_1', queries: [] })],
  ['an item to be compacted', '/v1/responses/compact', items({ id: 'msg_1' })],
  [
    'an item whose type is spelled with escapes',
    RESPONSES,
    '{"input":[{"type":"item_\\u0072eference","id":"m"}]}',
  ],
  [
    'audio that it carries',
    CHAT,
    content({ type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } }),
  ],
  ['an earlier response', RESPONSES, { model: 'a', previous_response_id: 'r' }],
  ['a conversation', RESPONSES, { model: 'a', conversation: 'c' }],
  ['a stored prompt', RESPONSES, { model: 'a', prompt: { id: 'p' } }],
  ['a tool that runs upstream', RESPONSES, tools({ type: 'web_search' })],
  ['a name in escapes', MESSAGES, '{"model":"a","messages":[{"\\u0066ile_id":"f"}]}'],
  ['a body that is no JSON', MESSAGES, '{"model":"a","messages":[{"file_id":"f"}'],
  ['a form that names an address', EDITS, form({ model: 'a', prompt: '{"image_url":"x"}' })],
]
for (const [what, path, body] of elsewhere) {
  test(`${what}: more may be read than is sent`, async () => {
    assert.equal((await limitsOf(path, body)).refersElsewhere, true)
  })
}

const carried: readonly [what: string, path: string, body: Body][] = [
  ['prose', MESSAGES, content({ type: 'text', text: 'see the url and the file_id in the container' })],
  ['a thread that begins', MESSAGES, { model: 'a', thread: { type: 'create' } }],
  ['null for a thread', MESSAGES, { model: 'a', thread: null }],
  [
    'messages of a response',
    RESPONSES,
    items({ type: 'message', id: 'msg_1', role: 'assistant', content: [] }),
  ],
  ['a message without a type', RESPONSES, items({ id: 'msg_1', role: 'user', content: 'x' })],
  [
    'calls and their results',
    RESPONSES,
    items(
      { type: 'function_call', id: 'fc_1', arguments: '{}' },
      { type: 'function_call_output', id: 'fco_1', output: 'x' },
    ),
  ],
  [
    'reasoning that is carried along',
    RESPONSES,
    items({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' }),
  ],
  ['much of it', RESPONSES, items({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: LONG })],
  ['a text as input', RESPONSES, { model: 'a', input: 'item_reference' }],
  ['speech that is to be written down', TRANSCRIPTIONS, form({ model: 'a', file: new Blob(['x']) })],
]
for (const [what, path, body] of carried) {
  test(`${what}: all that is read is sent`, async () => {
    assert.equal((await limitsOf(path, body)).refersElsewhere, false)
  })
}

test('audio of an earlier answer is named by its id', async () => {
  const mayBe = async (path: string, body: Body) => (await limitsOf(path, body)).refersElsewhere
  const messages = [{ role: 'assistant', audio: { id: 'audio_1' } }]
  assert.equal(await mayBe(CHAT, { model: 'a', messages }), true)
  assert.equal(await mayBe(CHAT, '{"messages":[{"a\\u0075dio":{"\\u0069d":"audio_1"}}]}'), true)
  assert.equal(await mayBe(CHAT, { model: 'a', modalities: ['text', 'audio'], audio: { voice: 'x' } }), false)
  assert.equal(await mayBe(CHAT, { model: 'a', messages: [{ tool_calls: [{ id: 'call_1' }] }] }), false)
  assert.equal(await mayBe(MESSAGES, { model: 'a', messages }), false)
})

test('a body of which nothing is known may name anything', async () => {
  for (const body of ['no JSON', null]) assert.equal((await limitsOf(MESSAGES, body)).refersElsewhere, true)
})
