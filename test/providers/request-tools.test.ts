import assert from 'node:assert/strict'
import { readTools, toolList, USES_WITHOUT_LIMIT } from '../../src/providers/request-members.ts'
import { SURFACES } from '../../src/providers/surfaces.ts'
import { test } from '../support/suite.ts'
import { CHAT, limitsOf, MESSAGES, RESPONSES, tools } from './limits-of.ts'

const read = (surface: 'messages' | 'chat', list: unknown, callsMax: number | null = null) =>
  readTools(SURFACES[surface].tools, toolList(list), callsMax)

test('advisors have a number of uses', () => {
  const advisor = { type: 'advisor_20260301', model: 'b' }
  assert.equal(read('messages', [{ ...advisor, max_uses: 3 }]).uses, 3)
  assert.equal(read('messages', [advisor]).uses, USES_WITHOUT_LIMIT)
})

test('uses are limited on Messages by each tool that knows how, on Responses by all together', async () => {
  const messages = async (...list: unknown[]) => (await limitsOf(MESSAGES, tools(...list))).tools.uses
  const search = { type: 'web_search_20260318', max_uses: 2 }
  assert.equal(await messages({ name: 'f', input_schema: {} }, { type: 'bash_20250124' }), 0)
  assert.equal(await messages(search, { type: 'web_fetch_20250910', max_uses: 3 }), 5)
  for (const limit of [undefined, null, 0, '2', -1, 1.5])
    assert.equal(await messages({ ...search, max_uses: limit }), USES_WITHOUT_LIMIT, String(limit))
  for (const type of [
    'code_execution_20260521',
    'tool_search_tool_bm25',
    'mcp_toolset',
    'Web_search_20250305',
  ])
    assert.equal(await messages({ type, max_uses: 2 }), USES_WITHOUT_LIMIT, type)
  // A tool without a limit leaves the limits of the others as they are.
  assert.equal(await messages(search, { type: 'code_execution_20260521' }), 2 + USES_WITHOUT_LIMIT)
  const responses = async (body: object, path = RESPONSES) =>
    (await limitsOf(path, { model: 'a', ...body })).tools
  const hosted = [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }]
  const limited = await responses({ tools: hosted, max_tool_calls: 4 })
  assert.deepEqual([limited.uses, limited.webSearches, limited.fileSearches], [4, 4, 0])
  assert.equal((await responses({ tools: [{ type: 'web_search', max_uses: 4 }] })).uses, USES_WITHOUT_LIMIT)
  for (const limit of [null, 0, '4', -1])
    assert.equal(
      (await responses({ tools: hosted, max_tool_calls: limit })).uses,
      USES_WITHOUT_LIMIT,
      String(limit),
    )
  // Upstream does not count the calls of these tools.
  for (const type of ['mcp', 'image_generation', 'programmatic_tool_calling', 'tool_search'])
    assert.equal((await responses({ tools: [{ type }], max_tool_calls: 4 })).uses, USES_WITHOUT_LIMIT, type)
  const beside = { tools: [...hosted, { type: 'mcp' }], max_tool_calls: 50 }
  assert.equal((await responses(beside)).uses, 50 + USES_WITHOUT_LIMIT)
  assert.equal((await responses({ tools: hosted, max_tool_calls: 4 }, CHAT)).uses, USES_WITHOUT_LIMIT)
})

test('tools that the client runs are used at its own pace', () => {
  const uses = (surface: 'messages' | 'chat', tool: object) => read(surface, [tool]).uses
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
  const containers = (...list: unknown[]) => read('chat', list, 1).containers
  assert.equal(containers({ type: 'function' }, { type: 'shell', environment: { type: 'local' } }), 0)
  assert.equal(containers({ type: 'code_interpreter', container: 'cntr_1' }, { type: 'shell' }), 2)
  assert.equal(containers({ type: 'shell', environment: { type: 'container_auto' } }), 1)
})

test('tools of which one cannot be read are unknown tools', () => {
  for (const list of [{}, [1], [{ tools: 1 }], [{ tools: [{ tools: [] }] }], [{ tools: [null] }]])
    assert.equal(toolList(list), null, JSON.stringify(list))
})
