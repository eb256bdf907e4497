import assert from 'node:assert/strict'
import type { RequestProfile } from '../../src/pricing/request-profile.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { profileRequest } from '../../src/providers/profile-request.ts'
import { LIMITLESS } from '../../src/providers/request-facts.ts'
import { test } from '../support/suite.ts'
import { type Body, factsOf, form } from './request-facts-of.ts'

const MESSAGES = '/v1/messages'
const RESPONSES = '/v1/responses'
const IMAGES = '/v1/images/generations'
const EDITS = '/v1/images/edits'
const TRANSCRIPTIONS = '/v1/audio/transcriptions'
/** A text longer than the kept part of a member. */
const LONG = 'x'.repeat(300_000)

async function profileOf(path: string, body: Body): Promise<RequestProfile> {
  const surface = path === MESSAGES ? 'messages' : 'chat'
  const endpoint = findEndpoint(surface, 'POST', path)
  assert.ok(endpoint)
  const facts = await factsOf(endpoint, body)
  const terms = { chatDefaultTier: null, chatRegional: false }
  return profileRequest({ surface, path, endpoint, facts, bodyBytes: 0 }, terms)
}

const tools = (...list: unknown[]) => ({ model: 'a', tools: list })
const items = (...list: unknown[]) => ({ model: 'a', input: list })
const content = (part: unknown) => ({ model: 'a', messages: [{ role: 'user', content: [part] }] })

const plain: readonly [what: string, path: string, body: Body][] = [
  ['a plain request', MESSAGES, { model: 'a', messages: [] }],
  ['null for fallbacks', MESSAGES, { model: 'a', fallbacks: null }],
  ['a namespace', RESPONSES, tools({ type: 'namespace', tools: [{ type: 'function' }] })],
  ['null for tools', RESPONSES, { model: 'a', tools: null }],
  ['items without tools', RESPONSES, items({ role: 'user', content: 'tools' }, { tools: null })],
  ['a text as input', RESPONSES, { model: 'a', input: 'x', reasoning: { mode: 'standard' } }],
  ['an image that is not SVG', IMAGES, { model: 'a', output_format: 'png', svg: null }],
]
const elsewhere: typeof plain = [
  ['an empty list of MCP servers', MESSAGES, { model: 'a', mcp_servers: [] }],
  ['a stored prompt', RESPONSES, { model: 'a', prompt: { id: 'p' } }],
  ['an image form', EDITS, form({ model: 'a', output_format: 'png' })],
  ['a continued response', RESPONSES, { model: 'a', previous_response_id: 'r' }],
  ['an image', MESSAGES, content({ type: 'image', source: { type: 'base64', data: 'x' } })],
]
const exotic: typeof plain = [
  ['an item with a search', RESPONSES, items({ type: 'additional_tools', tools: [{ type: 'web_search' }] })],
  [
    'an item with a namespace behind others',
    RESPONSES,
    items('x', { role: 'user' }, { type: 'tool_search_output', tools: [{ type: 'namespace', tools: [] }] }),
  ],
  ['an item to be compacted', '/v1/responses/compact', items({ tools: [{ type: 'web_search' }] })],
  ['MCP servers', MESSAGES, { model: 'a', mcp_servers: [{ type: 'url', url: 'x', name: 'm' }] }],
  ['unreadable MCP servers', MESSAGES, { model: 'a', mcp_servers: {} }],
  ['pro mode, which runs several passes', RESPONSES, { model: 'a', reasoning: { mode: 'pro' } }],
  ['agents that call agents', RESPONSES, { model: 'a', multi_agent: {} }],
  ['named fallbacks', MESSAGES, { model: 'a', fallbacks: [{ model: 'b' }, 'c'] }],
  ['readable tools of every type', RESPONSES, tools({ type: 'function' }, { type: 'web_search' })],
  ['an advisor', MESSAGES, tools({ type: 'advisor_20260301', model: 'b', max_uses: 1 })],
]
const unknown: typeof plain = [
  ['default fallbacks', MESSAGES, { model: 'a', fallbacks: 'default' }],
  ['an object for fallbacks', MESSAGES, { model: 'a', fallbacks: { model: 'b' } }],
  ['a number for fallbacks', MESSAGES, { model: 'a', fallbacks: 1 }],
  ['a fallback without a model', MESSAGES, { model: 'a', fallbacks: [{ model: 'b' }, {}] }],
  ['overlong fallbacks', MESSAGES, { model: 'a', fallbacks: [{ model: 'b', x: LONG }] }],
  ['a fallback with too long a name', MESSAGES, { model: 'a', fallbacks: ['b'.repeat(257)] }],
  ['an advisor without a model', MESSAGES, tools({ type: 'advisor_20260301' })],
  ['overlong tools', RESPONSES, tools({ type: 'function', description: LONG })],
  ['an object for tools', RESPONSES, { model: 'a', tools: { type: 'function' } }],
  ['a string as a tool', RESPONSES, tools('web_search')],
  ['a tool whose type is not a string', RESPONSES, tools({ type: {} })],
  ['an object as the tools of a namespace', RESPONSES, tools({ type: 'namespace', tools: {} })],
  [
    'a namespace in a namespace',
    RESPONSES,
    tools({ type: 'namespace', tools: [{ type: 'namespace', tools: [{ type: 'web_search' }] }] }),
  ],
  ['an item with an object for tools', RESPONSES, items({ tools: {} })],
  [
    'a tool that a message defines',
    MESSAGES,
    content({
      type: 'tool_addition',
      tool: { type: 'tool_definition', definition: { type: 'web_search_20250305' } },
    }),
  ],
  ['a film', IMAGES, { model: 'a', output_format: 'gif' }],
  ['images half done', IMAGES, { model: 'a', partial_images: 3 }],
  ['images half done, in a form', EDITS, form({ model: 'a', partial_images: '3' })],
  ['audio in pieces', TRANSCRIPTIONS, form({ model: 'a', chunking_strategy: 'auto' })],
  ['audio in some pieces', TRANSCRIPTIONS, form({ model: 'a', 'chunking_strategy[type]': 'server_vad' })],
  ['a form instead of JSON', RESPONSES, form({ model: 'a' })],
  ['an SVG', IMAGES, { model: 'a', output_format: 'svg' }],
  ['an SVG by a named model', IMAGES, { model: 'a', svg: { model: 'b' } }],
  ['an SVG by whoever', IMAGES, { model: 'a', svg: {} }],
  ['an SVG in a form', EDITS, form({ model: 'a', output_format: 'svg' })],
  ['an incomplete body', MESSAGES, '{"model":"a"'],
]
for (const [boundClass, requests] of Object.entries({ plain, elsewhere, exotic, unknown })) {
  for (const [what, path, body] of requests)
    test(`${what}: ${boundClass}`, async () => {
      assert.equal((await profileOf(path, body)).boundClass, boundClass)
    })
}

test('an MCP server and its toolset count once', async () => {
  const mcp = { mcp_servers: [{ type: 'url', url: 'x', name: 'm' }] }
  assert.equal((await profileOf(MESSAGES, { ...mcp, ...tools({ type: 'mcp_toolset' }) })).passes, 8)
})

test('fallbacks are separate passes, and the largest limit counts', async () => {
  const body = { model: 'a', max_tokens: 7, fallbacks: [{ model: 'b', max_tokens: 9 }, 'c', { model: 'd' }] }
  const { passes, otherModels, maxOutputTokens } = await profileOf(MESSAGES, body)
  assert.deepEqual([passes, otherModels, maxOutputTokens], [3, ['b', 'c', 'd'], 9])
  for (const limit of ['9', -1, 1.5, true, {}, { toString: 1 }]) {
    const fallbacks = [{ model: 'b', max_tokens: limit }]
    assert.equal((await profileOf(MESSAGES, { ...body, fallbacks })).maxOutputTokens, LIMITLESS)
  }
})

const edits = (...list: unknown[]) => ({ context_management: { edits: list } })
const compactions: readonly [what: string, path: string, body: object, compacts: boolean][] = [
  ['nothing said', MESSAGES, {}, false],
  ['no edits', MESSAGES, edits(), false],
  ['an edit that clears tool uses', MESSAGES, edits({ type: 'clear_tool_uses_20250919' }), false],
  ['an edit that compacts', MESSAGES, edits({ type: 'clear_x' }, { type: 'compact_20260112' }), true],
  ['an unknown edit', MESSAGES, edits({ type: 'fold_20270101' }), true],
  ['edits that are not a list', MESSAGES, { context_management: { edits: 'compact' } }, true],
  ['a request to sum up', MESSAGES, { compaction: { type: 'summarize' } }, true],
  ['a threshold', RESPONSES, { context_management: [{ type: 'compaction' }] }, true],
  [
    'an item that triggers it',
    RESPONSES,
    { input: [{ role: 'user' }, { type: 'compaction_trigger' }] },
    true,
  ],
]
for (const [what, path, body, compacts] of compactions) {
  test(`compaction, ${what}: ${compacts}`, async () => {
    const limits = await profileOf(path, { model: 'a', ...body })
    assert.deepEqual([limits.compacts, limits.boundClass === 'exotic'], [compacts, compacts])
  })
}

test('a duplicate limit is ambiguous, at any position', async () => {
  for (const [path, body] of [
    [MESSAGES, '{"fallbacks":[{"model":"b","max_tokens":1,"max_tokens":60000}]}'],
    [MESSAGES, '{"fallbacks":[{"model":"b","speed":"standard","speed":"fast"}]}'],
    [MESSAGES, '{"tools":[{"type":"web_search_20250305","max_uses":1,"max_uses":9}]}'],
    [MESSAGES, '{"tools":[{"type":"advisor_20260301","max_tokens":1,"max_tokens":9}]}'],
    [MESSAGES, '{"thread":{"type":"create","type":"continue"}}'],
    [MESSAGES, '{"context_management":{"edits":[{"type":"clear_x","type":"compact_20260112"}]}}'],
    [RESPONSES, '{"tools":[{"type":"shell","environment":{"type":"local","type":"container_auto"}}]}'],
    [RESPONSES, '{"input":[{"type":"message","type":"item_reference","id":"m"}]}'],
    [RESPONSES, '{"max_tool_calls":1,"max_tool_calls":9}'],
  ] as const) {
    const facts = await factsOf(findEndpoint(path === MESSAGES ? 'messages' : 'chat', 'POST', path), body)
    assert.match(facts.ambiguity?.detail ?? '', /is given twice/, body)
  }
})
