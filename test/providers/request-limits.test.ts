import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Surface } from '../../src/providers/endpoint.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { type RequestLimits, readLimits } from '../../src/providers/request-limits.ts'
import { readRequestTools, UNKNOWN_TOOLS } from '../../src/providers/request-tools.ts'
import { type Body, factsOf, form } from './request-facts-of.ts'

const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'
const IMAGES = '/v1/images/generations'
const EDITS = '/v1/images/edits'
const LONG = 'x'.repeat(300_000)

async function limitsOf(path: string, body: Body): Promise<RequestLimits> {
  const surface: Surface = path === MESSAGES ? 'messages' : 'chat'
  const facts = await factsOf(findEndpoint(surface, 'POST', path), body)
  return readLimits(surface, facts, () => Buffer.from(''))
}

const tools = (...list: unknown[]) => ({ model: 'a', tools: list })
const items = (...list: unknown[]) => ({ model: 'a', input: list })

const limited: readonly [what: string, path: string, body: Body][] = [
  ['a plain request', MESSAGES, { model: 'a', messages: [] }],
  ['fallbacks that are named', MESSAGES, { model: 'a', fallbacks: [{ model: 'b' }, 'c'] }],
  ['null for fallbacks', MESSAGES, { model: 'a', fallbacks: null }],
  ['tools of every kind that can be read', RESPONSES, tools({ type: 'function' }, { type: 'web_search' })],
  ['a namespace', RESPONSES, tools({ type: 'namespace', tools: [{ type: 'function' }] })],
  ['null for tools', RESPONSES, { model: 'a', tools: null }],
  ['items without tools', RESPONSES, items({ role: 'user', content: 'tools' }, { tools: null })],
  ['a text as input', RESPONSES, { model: 'a', input: 'x' }],
  ['an image that is no SVG', IMAGES, { model: 'a', output_format: 'png', svg: null }],
  ['a form', EDITS, form({ model: 'a', output_format: 'png' })],
]
for (const [what, path, body] of limited) {
  test(`${what}: limited by what the request says`, async () => {
    assert.equal((await limitsOf(path, body)).unlimited, false)
  })
}

const unlimited: readonly [what: string, path: string, body: Body][] = [
  ['fallbacks that upstream chooses', MESSAGES, { model: 'a', fallbacks: 'default' }],
  ['an object for fallbacks', MESSAGES, { model: 'a', fallbacks: { model: 'b' } }],
  ['a number for fallbacks', MESSAGES, { model: 'a', fallbacks: 1 }],
  ['a fallback without a model', MESSAGES, { model: 'a', fallbacks: [{ model: 'b' }, {}] }],
  ['fallbacks that are too long', MESSAGES, { model: 'a', fallbacks: [{ model: 'b', x: LONG }] }],
  ['a fallback with too long a name', MESSAGES, { model: 'a', fallbacks: ['b'.repeat(257)] }],
  ['an advisor without a model', MESSAGES, tools({ type: 'advisor_20260301' })],
  ['tools that are too long', RESPONSES, tools({ type: 'function', description: LONG })],
  ['an object for tools', RESPONSES, { model: 'a', tools: { type: 'function' } }],
  ['a tool that is a string', RESPONSES, tools('web_search')],
  ['a tool without a type that is a text', RESPONSES, tools({ type: {} })],
  ['an object for the tools of a namespace', RESPONSES, tools({ type: 'namespace', tools: {} })],
  [
    'a namespace in a namespace',
    RESPONSES,
    tools({ type: 'namespace', tools: [{ type: 'namespace', tools: [{ type: 'web_search' }] }] }),
  ],
  ['an item with a search', RESPONSES, items({ type: 'additional_tools', tools: [{ type: 'web_search' }] })],
  [
    'an item with a namespace behind others',
    RESPONSES,
    items('x', { role: 'user' }, { type: 'tool_search_output', tools: [{ type: 'namespace', tools: [] }] }),
  ],
  ['an item with an object for tools', RESPONSES, items({ tools: {} })],
  ['an item to be compacted', '/v1/responses/compact', items({ tools: [{ type: 'web_search' }] })],
  ['a stored prompt', RESPONSES, { model: 'a', prompt: { id: 'p' } }],
  ['an SVG', IMAGES, { model: 'a', output_format: 'svg' }],
  ['an SVG by a model that is named', IMAGES, { model: 'a', svg: { model: 'b' } }],
  ['an SVG by whoever', IMAGES, { model: 'a', svg: {} }],
  ['an SVG in a form', EDITS, form({ model: 'a', output_format: 'svg' })],
  ['a body that cannot be read', MESSAGES, '{"model":"a"'],
]
for (const [what, path, body] of unlimited) {
  test(`${what}: nothing limits it`, async () => {
    assert.equal((await limitsOf(path, body)).unlimited, true)
  })
}

test('the fallbacks are those that a list of allowed models is held against', async () => {
  const { fallbackModels } = await limitsOf(MESSAGES, {
    model: 'a',
    fallbacks: [{ model: 'b', max_tokens: 1 }, 'c', { model: 1 }],
    tools: [{ type: 'advisor_20260301', model: 'd' }],
  })
  assert.deepEqual(fallbackModels, ['b', 'c', 'd'])
})

test('tools inside of a namespace count like those outside', () => {
  const inside = (...list: unknown[]) => JSON.stringify([{ type: 'namespace', name: 'n', tools: list }])
  const search = readRequestTools('chat', inside({ type: 'function' }, { type: 'web_search' }))
  assert.equal(search.webSearchesMax, null)
  assert.equal(search.fileSearchesMax, 0)
  assert.equal(readRequestTools('chat', inside({ type: 'file_search' })).fileSearchesMax, null)
  assert.equal(readRequestTools('chat', inside({ type: 'image_generation', model: 'b' })).imageModel, 'b')
  assert.deepEqual(readRequestTools('chat', inside({ type: 'x', model: 'b' })).otherModels, ['b'])
})

test('uses of searches are added up, outside of namespaces and inside', () => {
  const search = { type: 'web_search_20250305', max_uses: 2 }
  const json = JSON.stringify([search, { type: 'namespace', tools: [search, { ...search, max_uses: 3 }] }])
  assert.equal(readRequestTools('messages', json).webSearchesMax, 7)
})

test('tools of which one cannot be read are unknown tools', () => {
  for (const json of ['{}', '[1]', '[{"tools":1}]', '[{"tools":[{"tools":[]}]}]', '[{"tools":[null]}]'])
    assert.equal(readRequestTools('chat', json), UNKNOWN_TOOLS, json)
})

const content = (part: unknown) => ({ model: 'a', messages: [{ role: 'user', content: [part] }] })
const elsewhere: readonly [what: string, path: string, body: Body][] = [
  ['an image by its address', MESSAGES, content({ type: 'image', source: { type: 'url', url: 'x' } })],
  ['an image by another name of its address', RESPONSES, items({ type: 'input_image', image_url: 'x' })],
  ['a file by its id', MESSAGES, content({ type: 'document', source: { type: 'file', file_id: 'f' } })],
  ['a document that it carries', MESSAGES, content({ source: { type: 'base64', data: 'JVBE' } })],
  ['a file that it carries', RESPONSES, items({ type: 'input_file', file_data: 'JVBE' })],
  ['a container', MESSAGES, { model: 'a', container: 'c' }],
  ['servers of tools', MESSAGES, { model: 'a', mcp_servers: [] }],
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
    const surface: Surface = path === MESSAGES ? 'messages' : 'chat'
    const facts = await factsOf(findEndpoint(surface, 'POST', path), body)
    const bytes = body instanceof FormData ? JSON.stringify([...body]).replaceAll('\\', '') : String(body)
    assert.equal(readLimits(surface, facts, () => Buffer.from(bytes)).refersElsewhere, true)
  })
}

test('a body of JSON that names nothing is all there is, be it at hand or in a file or encoded', async () => {
  const body = content({ type: 'text', text: 'see the url and the file_id in the container' })
  const facts = await factsOf(findEndpoint('messages', 'POST', MESSAGES), body)
  for (const bytes of [Buffer.from(JSON.stringify(body)), null])
    assert.equal(readLimits('messages', facts, () => bytes).refersElsewhere, false)
})

test('a body of which nothing is known, and that is not at hand, may name anything', async () => {
  const endpoint = findEndpoint('messages', 'POST', MESSAGES)
  for (const facts of [await factsOf(endpoint, 'no JSON'), await factsOf(endpoint, null)])
    assert.equal(readLimits('messages', facts, () => null).refersElsewhere, true)
})
