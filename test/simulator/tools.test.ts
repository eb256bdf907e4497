import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import {
  anthropicHeaders,
  chatBody,
  messageBody,
  postEvents,
  postJson,
  type Sent,
  weatherSchema,
} from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const respond = (more: object, sent: Sent = {}) =>
  postJson(simulator, '/v1/responses', { model: 'gpt-4o', input: 'Hello', ...more }, sent)
const chat = (more: object, sent: Sent = {}) =>
  postJson(simulator, '/v1/chat/completions', chatBody(more), sent)
const message = (more: object, sent: Sent = {}) =>
  postJson(simulator, '/v1/messages', messageBody(more), { headers: anthropicHeaders, ...sent })
const typesOf = (json: unknown, path: string) => digList(json, path).map((item) => dig(item, 'type'))

test('Responses: every kind of tool that a client runs is called in its own form', async () => {
  for (const [tool, name, expected] of [
    [
      { type: 'function', name: 'get_weather', parameters: weatherSchema },
      'get_weather',
      { type: 'function_call' },
    ],
    [{ type: 'custom', name: 'grep' }, 'grep', { type: 'custom_tool_call', name: 'grep' }],
    [{ type: 'local_shell' }, 'local_shell', { type: 'local_shell_call', 'action.command.0': 'ls' }],
    [{ type: 'shell' }, 'shell', { type: 'shell_call', 'action.commands.0': 'ls -la' }],
    [{ type: 'apply_patch' }, 'apply_patch', { type: 'apply_patch_call', 'operation.type': 'update_file' }],
    [{ type: 'computer' }, 'computer', { type: 'computer_call', 'actions.0.type': 'screenshot' }],
    [
      { type: 'computer_use_preview', display_width: 1, display_height: 1, environment: 'mac' },
      'computer_use_preview',
      { type: 'computer_call', 'action.type': 'screenshot' },
    ],
    [
      { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'find_customer' }] },
      'find_customer',
      { type: 'function_call', name: 'find_customer' },
    ],
  ] as const) {
    const body = { tools: [{ type: 'tool_search' }, tool] }
    const { json } = await respond(body, { behaviour: `call=${name}` })
    for (const [path, value] of Object.entries(expected)) assert.equal(dig(json, `output.0.${path}`), value)
    assert.match(digText(json, 'output.0.call_id'), /^call_/)
    assert.ok(digNumber(json, 'usage.output_tokens') > 0)
    const request = { model: 'gpt-4o', input: 'Hello', stream: true, ...body }
    const events = await postEvents(simulator, '/v1/responses', request, { behaviour: `call=${name}` })
    assert.equal(dig(events.at(-1)?.data, 'response.output.0.type'), expected.type)
  }
})

test('Responses: the words of a custom tool are streamed', async () => {
  const tools = [{ type: 'custom', name: 'apply_patch' }]
  const body = { model: 'gpt-4o', input: 'patch it', tools, stream: true }
  const events = await postEvents(simulator, '/v1/responses', body)
  const deltas = events.filter(({ event }) => event === 'response.custom_tool_call_input.delta')
  const done = events.find(({ event }) => event === 'response.custom_tool_call_input.done')
  assert.equal(deltas.map(({ data }) => dig(data, 'delta')).join(''), dig(done?.data, 'input'))
})

test('Responses: tools of upstream’s own are run before the answer, and counted', async () => {
  const kinds = ['web_search', 'web_search', 'file_search', 'code_interpreter', 'image_generation', 'shell']
  const tools = [
    { type: 'web_search' },
    { type: 'file_search', vector_store_ids: ['vs_1'] },
    { type: 'code_interpreter', container: { type: 'auto' } },
    { type: 'image_generation' },
    { type: 'shell', environment: { type: 'container_auto' } },
  ]
  const sent = { behaviour: `call=${kinds.join(',')}` }
  const { json } = await respond({ tools }, sent)
  assert.deepEqual(typesOf(json, 'output'), [
    'web_search_call',
    'web_search_call',
    'file_search_call',
    'code_interpreter_call',
    'image_generation_call',
    'shell_call',
    'shell_call_output',
    'message',
  ])
  assert.equal(dig(json, 'tool_usage.web_search.num_requests'), 2)
  assert.equal(dig(json, 'tool_usage.image_gen.output_tokens'), 1_056)
  assert.match(digText(json, 'output.3.container_id'), /^cntr_/)
  assert.match(digText(json, 'output.5.environment.container_id'), /^cntr_/)
  const plain = await respond({ tools })
  assert.equal(dig(plain.json, 'tool_usage.web_search.num_requests'), 0)
  const read = digNumber(json, 'usage.input_tokens') - digNumber(plain.json, 'usage.input_tokens')
  assert.equal(read, 6 * 400)
  const request = { model: 'gpt-4o', input: 'Hello', tools, stream: true }
  const events = (await postEvents(simulator, '/v1/responses', request, sent)).map(({ event }) => event)
  for (const event of [
    'response.web_search_call.searching',
    'response.file_search_call.completed',
    'response.code_interpreter_call_code.delta',
    'response.image_generation_call.partial_image',
  ]) {
    assert.ok(events.includes(event), event)
  }
})

test('Responses: a search is made when words ask for it, or when it is forced', async () => {
  const tools = [{ type: 'web_search_preview_2025_03_11' }]
  const asked = await respond({ tools, input: 'Look on the web for tollgates' })
  assert.deepEqual(typesOf(asked.json, 'output'), ['web_search_call', 'message'])
  const forced = await respond({ tools, tool_choice: { type: 'web_search_preview' } })
  assert.deepEqual(typesOf(forced.json, 'output'), ['web_search_call', 'message'])
  const unasked = await respond({ tools })
  assert.deepEqual(typesOf(unasked.json, 'output'), ['message'])
})

test('Chat: functions of the older form are called in the older form, whole and streamed', async () => {
  const functions = [{ name: 'get_weather', parameters: weatherSchema }]
  const messages = [{ role: 'user', content: 'How is the weather in Lima?' }]
  const { json } = await chat({ functions, messages })
  assert.equal(dig(json, 'choices.0.finish_reason'), 'function_call')
  const call = { name: 'get_weather', arguments: '{"city":"Lima"}' }
  assert.deepEqual(dig(json, 'choices.0.message.function_call'), call)
  assert.equal(dig(json, 'choices.0.message.content'), null)
  const events = await postEvents(
    simulator,
    '/v1/chat/completions',
    chatBody({ functions, messages, stream: true }),
  )
  const pieces = events.map(({ data }) => dig(data, 'choices.0.delta.function_call.arguments') ?? '')
  assert.equal(pieces.join(''), call.arguments)
  const turns = [
    ...messages,
    { role: 'assistant', content: null, function_call: call },
    { role: 'function', name: 'get_weather', content: 'windy' },
  ]
  assert.equal(dig((await chat({ functions, messages: turns })).json, 'choices.0.finish_reason'), 'stop')
  const none = await chat({ functions, messages, function_call: 'none' })
  assert.equal(dig(none.json, 'choices.0.finish_reason'), 'stop')
})

test('Chat: a custom tool is called with words, whole and streamed', async () => {
  const tools = [{ type: 'custom', custom: { name: 'grep' } }]
  const tool_choice = { type: 'custom', custom: { name: 'grep' } }
  const { json } = await chat({ tools, tool_choice })
  assert.equal(dig(json, 'choices.0.message.tool_calls.0.type'), 'custom')
  const input = digText(json, 'choices.0.message.tool_calls.0.custom.input')
  const request = chatBody({ tools, tool_choice, stream: true })
  const events = await postEvents(simulator, '/v1/chat/completions', request)
  const pieces = events.map(({ data }) => dig(data, 'choices.0.delta.tool_calls.0.custom.input') ?? '')
  assert.equal(pieces.join(''), input)
})

test('Chat: a search model cites a page, and no usage tells of it', async () => {
  for (const more of [{ model: 'gpt-4o-search-preview' }, { web_search_options: {} }]) {
    const { json } = await chat(more)
    assert.equal(dig(json, 'choices.0.message.annotations.0.type'), 'url_citation')
    const events = await postEvents(simulator, '/v1/chat/completions', chatBody({ ...more, stream: true }))
    assert.ok(events.some(({ data }) => dig(data, 'choices.0.delta.annotations.0.type') === 'url_citation'))
  }
})

test('Messages: every tool of upstream’s making that a client runs is called by its name', async () => {
  for (const [tool, name, input] of [
    [{ type: 'bash_20250124', name: 'bash' }, 'bash', { command: 'ls -la' }],
    [
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      'str_replace_based_edit_tool',
      { command: 'view', path: '/repo/README.md' },
    ],
    [{ type: 'memory_20250818', name: 'memory' }, 'memory', { command: 'view', path: '/memories' }],
    [{ type: 'computer_20251124', name: 'computer' }, 'computer', { action: 'screenshot' }],
    [{ type: 'computer_toolset_20260801' }, 'screenshot', {}],
  ] as const) {
    const { json } = await message({ tools: [tool] }, { behaviour: `call=${name}` })
    assert.equal(dig(json, 'stop_reason'), 'tool_use')
    assert.equal(dig(json, 'content.1.name'), name)
    assert.deepEqual(dig(json, 'content.1.input'), input)
    assert.equal(dig(json, 'content.1.toolset_name'), name === 'screenshot' ? 'computer' : undefined)
  }
})

test('Messages: tools of upstream’s own are run before the answer, and searches are counted', async () => {
  const tools = [
    { type: 'web_search_20260318', name: 'web_search' },
    { type: 'web_fetch_20260318', name: 'web_fetch' },
    { type: 'code_execution_20260521', name: 'code_execution' },
    { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  ]
  const sent = { behaviour: 'call=web_search,web_search,web_fetch,code_execution,tool_search_tool_regex' }
  const { json } = await message({ tools }, sent)
  assert.deepEqual(typesOf(json, 'content'), [
    ...['server_tool_use', 'web_search_tool_result', 'server_tool_use', 'web_search_tool_result'],
    ...['server_tool_use', 'web_fetch_tool_result', 'server_tool_use', 'bash_code_execution_tool_result'],
    ...['server_tool_use', 'tool_search_tool_result', 'text'],
  ])
  assert.equal(dig(json, 'content.1.tool_use_id'), dig(json, 'content.0.id'))
  assert.equal(dig(json, 'stop_reason'), 'end_turn')
  assert.deepEqual(dig(json, 'usage.server_tool_use'), { web_search_requests: 2, web_fetch_requests: 1 })
  assert.match(digText(json, 'container.id'), /^container_/)
  const events = await postEvents(simulator, '/v1/messages', messageBody({ tools, stream: true }), {
    headers: anthropicHeaders,
    ...sent,
  })
  const end = events.find(({ event }) => event === 'message_delta')?.data
  const read = digNumber(end, 'usage.input_tokens') - digNumber(events[0]?.data, 'message.usage.input_tokens')
  assert.equal(read, 5 * 400)
  assert.equal(dig(end, 'usage.server_tool_use.web_search_requests'), 2)
  assert.equal(dig(end, 'usage.output_tokens'), dig(json, 'usage.output_tokens'))
})

test('output limits count calls of upstream’s own tools too', async () => {
  const tools = [{ type: 'web_search_20260318', name: 'web_search' }]
  const { json } = await message({ tools, max_tokens: 3 }, { behaviour: 'call=web_search' })
  assert.equal(dig(json, 'stop_reason'), 'max_tokens')
  assert.equal(dig(json, 'usage.output_tokens'), 3)
})

test('a structured answer has the form that was asked for, and a form without a schema is refused', async () => {
  const schema = { ...weatherSchema, properties: { city: { type: 'string' }, sunny: { type: 'boolean' } } }
  const nested = { type: 'json_schema', json_schema: { name: 'weather', schema } }
  const { json } = await chat({ response_format: nested })
  assert.deepEqual(Object.keys(JSON.parse(digText(json, 'choices.0.message.content'))), ['city', 'sunny'])
  const any = await respond({ text: { format: { type: 'json_object' } } })
  assert.equal(typeof JSON.parse(digText(any.json, 'output.0.content.0.text')), 'object')
  for (const [answer, param] of [
    [await chat({ response_format: { type: 'json_schema' } }), 'response_format.schema'],
    [await chat({ response_format: { type: 'yaml' } }), 'response_format.type'],
    [await respond({ text: { format: { type: 'json_schema', name: 'a' } } }), 'text.format.schema'],
  ] as const) {
    assert.equal(dig(answer.json, 'error.param'), param)
  }
})

test('a tool that is not played is refused by naming those that are', async () => {
  const mcp = [{ type: 'mcp', server_label: 'a', server_url: 'https://a.example' }]
  for (const [answer, param] of [
    [await respond({ tools: mcp }), 'tools[0].type'],
    [await chat({ tools: mcp }), 'tools[0].type'],
    [await message({ tools: [{ type: 'advisor_20260301', name: 'advisor' }] }), undefined],
    [await chat({ modalities: ['text', 'audio'] }), 'modalities'],
  ] as const) {
    assert.equal(answer.status, 400)
    assert.match(digText(answer.json, 'error.message'), /This is the simulator/)
    assert.equal(dig(answer.json, 'error.param'), param)
  }
  const undeclared = await respond({ tools: [{ type: 'shell' }] }, { behaviour: 'call=web_search' })
  assert.match(digText(undeclared.json, 'error.message'), /'web_search', which is no declared tool/)
})
