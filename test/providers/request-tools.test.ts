import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRequestTools, UNKNOWN_TOOLS } from '../../src/providers/request-tools.ts'
import { CHAT, limitsOf, MESSAGES, RESPONSES, tools } from './limits-of.ts'

test('advisors have a model, a limit and a number of uses', () => {
  const advisor = { type: 'advisor_20260301', model: 'b' }
  const read = (...list: unknown[]) => readRequestTools('messages', JSON.stringify(list), null)
  assert.deepEqual(read({ ...advisor, max_uses: 3, max_tokens: 500 }).advisors, [
    { model: 'b', maxOutputTokens: 500, usesMax: 3 },
  ])
  assert.equal(read({ ...advisor, max_uses: 3 }).usesMax, 3)
  assert.equal(read(advisor).usesMax, null)
})

test('uses are limited on Messages by each tool that knows how, on Responses by all together', async () => {
  const messages = async (...list: unknown[]) => (await limitsOf(MESSAGES, tools(...list))).tools.usesMax
  const search = { type: 'web_search_20260318', max_uses: 2 }
  assert.equal(await messages({ name: 'f', input_schema: {} }, { type: 'bash_20250124' }), 0)
  assert.equal(await messages(search, { type: 'web_fetch_20250910', max_uses: 3 }), 5)
  for (const limit of [undefined, null, 0, '2', -1, 1.5])
    assert.equal(await messages({ ...search, max_uses: limit }), null, String(limit))
  for (const type of [
    'code_execution_20260521',
    'tool_search_tool_bm25',
    'mcp_toolset',
    'Web_search_20250305',
  ])
    assert.equal(await messages({ type, max_uses: 2 }), null, type)
  const responses = async (body: object, path = RESPONSES) =>
    (await limitsOf(path, { model: 'a', ...body })).tools
  const hosted = [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }]
  const limited = await responses({ tools: hosted, max_tool_calls: 4 })
  assert.deepEqual([limited.usesMax, limited.webSearchesMax, limited.fileSearchesMax], [4, 4, 0])
  assert.equal((await responses({ tools: [{ type: 'web_search', max_uses: 4 }] })).usesMax, null)
  for (const limit of [null, 0, '4', -1])
    assert.equal((await responses({ tools: hosted, max_tool_calls: limit })).usesMax, null, String(limit))
  // Upstream does not count the calls of these tools.
  for (const type of ['mcp', 'image_generation', 'programmatic_tool_calling', 'tool_search'])
    assert.equal((await responses({ tools: [{ type }], max_tool_calls: 4 })).usesMax, null, type)
  assert.equal((await responses({ tools: hosted, max_tool_calls: 4 }, CHAT)).usesMax, null)
})

test('tools that the client runs are used at its own pace', () => {
  const uses = (surface: 'messages' | 'chat', tool: object) =>
    readRequestTools(surface, JSON.stringify([tool]), null).usesMax
  for (const type of [
    'bash_20250124',
    'text_editor_20250728',
    'memory_20250818',
    'computer_toolset_20260801',
    'browser_toolset_20260801',
    'custom',
    null,
  ])
    assert.equal(uses('messages', { type }), 0, String(type))
  for (const tool of [
    { type: 'function' },
    { type: 'apply_patch' },
    { type: 'namespace', tools: [{ type: 'function' }] },
    { type: 'tool_search', execution: 'client' },
    { type: 'shell', environment: { type: 'local' } },
  ])
    assert.equal(uses('chat', tool), 0, tool.type)
})

test('containers are those of the tools that run code upstream', () => {
  const containers = (...list: unknown[]) => readRequestTools('chat', JSON.stringify(list), 1).containers
  assert.equal(containers({ type: 'function' }, { type: 'shell', environment: { type: 'local' } }), 0)
  assert.equal(containers({ type: 'code_interpreter', container: 'cntr_1' }, { type: 'shell' }), 2)
  assert.equal(containers({ type: 'shell', environment: { type: 'container_auto' } }), 1)
})

test('a model that is no name does no harm', async () => {
  for (const model of [{ toString: 1 }, 1, [], true]) {
    for (const type of ['image_generation', 'advisor_20260301', 'function']) {
      const { tools: read, unlimited } = await limitsOf(RESPONSES, tools({ type, model }))
      assert.deepEqual([read.imageModel, read.advisors, unlimited], [null, [], true], JSON.stringify(model))
    }
  }
})

test('what upstream says of the tools it describes is not in the body', () => {
  const promptTokens = (...list: unknown[]) =>
    readRequestTools('messages', JSON.stringify(list), null).promptTokens
  assert.equal(promptTokens(), 0)
  assert.equal(promptTokens({ name: 'f' }, { name: 'g' }), 2_048)
  assert.equal(promptTokens({ name: 'f' }, { type: 'bash_20250124' }), 4_096)
  assert.ok(promptTokens({ type: 'browser_toolset_20260801' }) > 10_000)
})

test('tools inside of a namespace count like those outside', () => {
  const inside = (...list: unknown[]) => JSON.stringify([{ type: 'namespace', name: 'n', tools: list }])
  const search = readRequestTools('chat', inside({ type: 'function' }, { type: 'web_search' }), null)
  assert.equal(search.webSearchesMax, null)
  assert.equal(search.fileSearchesMax, 0)
  assert.equal(readRequestTools('chat', inside({ type: 'file_search' }), null).fileSearchesMax, null)
  assert.equal(
    readRequestTools('chat', inside({ type: 'image_generation', model: 'b' }), null).imageModel,
    'b',
  )
  const [advisor] = readRequestTools('chat', inside({ type: 'x', model: 'b' }), null).advisors
  assert.equal(advisor?.model, 'b')
})

test('uses of searches are added up, outside of namespaces and inside', () => {
  const search = { type: 'web_search_20250305', max_uses: 2 }
  const json = JSON.stringify([search, { type: 'namespace', tools: [search, { ...search, max_uses: 3 }] }])
  assert.equal(readRequestTools('messages', json, null).webSearchesMax, 7)
})

test('tools of which one cannot be read are unknown tools', () => {
  for (const json of ['{}', '[1]', '[{"tools":1}]', '[{"tools":[{"tools":[]}]}]', '[{"tools":[null]}]'])
    assert.equal(readRequestTools('chat', json, null), UNKNOWN_TOOLS, json)
})
