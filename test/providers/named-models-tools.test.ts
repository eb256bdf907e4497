import { type ModelsCase, testModels } from './models-case.ts'

const LONG = 'm'.repeat(257)
const MESSAGES = 'POST /v1/messages'
const RESPONSES = 'POST /v1/responses'
const tools = (...list: unknown[]) => ({ model: 'a', tools: list })

const definition = {
  role: 'user',
  content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: { model: 'b' } } }],
}

const cases: readonly ModelsCase[] = [
  // Tools inside of a conversation.
  [
    'a tool that a message defines',
    'messages',
    MESSAGES,
    { model: 'a', messages: [definition] },
    /defines tools/,
  ],
  [
    'a tool that a message of a batch defines',
    'messages',
    'POST /v1/messages/batches',
    { requests: [{ custom_id: 'x', params: { model: 'a', messages: [definition] } }] },
    /defines tools/,
  ],
  [
    'a tool that a message defines which is only counted',
    'messages',
    'POST /v1/messages/count_tokens',
    { model: 'a', messages: [definition] },
    ['a'],
  ],
  // Fallbacks.
  [
    'fallbacks',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: [{ model: 'b', max_tokens: 1 }, 'c'] },
    ['a', 'b', 'c'],
  ],
  ['no fallbacks', 'messages', MESSAGES, { model: 'a', fallbacks: null }, ['a']],
  [
    'fallbacks that upstream chooses',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: 'default' },
    /left to upstream/,
  ],
  ['a fallback without a model', 'messages', MESSAGES, { model: 'a', fallbacks: [{}] }, /"fallbacks" cannot/],
  [
    'a fallback with a number',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: [{ model: 1 }] },
    /"fallbacks" cannot/,
  ],
  [
    'a fallback that is too long',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: [LONG] },
    /"fallbacks" cannot/,
  ],
  [
    'an object for fallbacks',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: { model: 'b' } },
    /"fallbacks" cannot/,
  ],
  [
    'a fallback twice over',
    'messages',
    MESSAGES,
    '{"model":"a","fallbacks":[{"model":"a","model":"b"}]}',
    /"model" is given twice/,
  ],
  [
    'fallbacks that cannot be read to the end',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: ['b'.repeat(300_000)] },
    /"fallbacks" cannot/,
  ],

  // Tools.
  [
    'tools that name nothing',
    'messages',
    MESSAGES,
    tools({ name: 'f', input_schema: { model: 'x' } }),
    ['a'],
  ],
  ['no tools', 'messages', MESSAGES, { model: 'a', tools: null }, ['a']],
  [
    'an advisor',
    'messages',
    MESSAGES,
    tools({ type: 'advisor_20260301', name: 'advisor', model: 'b' }),
    ['a', 'b'],
  ],
  ['an advisor without a model', 'messages', MESSAGES, tools({ type: 'advisor_20260301' }), /"tools" cannot/],
  ['an image tool', 'chat', RESPONSES, tools({ type: 'image_generation', model: 'b' }), ['a', 'b']],
  [
    'an image tool without a model',
    'chat',
    RESPONSES,
    tools({ type: 'image_generation' }),
    ['a', 'gpt-image-2'],
  ],
  [
    'an image tool with null for a model',
    'chat',
    RESPONSES,
    tools({ type: 'image_generation', model: null }),
    ['a', 'gpt-image-2'],
  ],
  [
    'an image tool spelled with escapes',
    'chat',
    RESPONSES,
    '{"model":"a","tools":[{"type":"imag\\u0065_generation"}]}',
    ['a', 'gpt-image-2'],
  ],
  [
    'an image tool that has SVG written',
    'chat',
    RESPONSES,
    tools({ type: 'image_generation', model: 'b', output_format: 'svg', svg: { model: 'c' } }),
    ['a', 'b', 'c'],
  ],
  [
    'an image tool that has SVG written by whom upstream chooses',
    'chat',
    RESPONSES,
    tools({ type: 'image_generation', output_format: 'svg' }),
    /writes the SVG/,
  ],
  [
    'a tool inside a namespace',
    'chat',
    RESPONSES,
    tools({ type: 'namespace', tools: [{ type: 'image_generation', model: 'b' }] }),
    ['a', 'b'],
  ],
  [
    'a namespace inside a namespace',
    'chat',
    RESPONSES,
    tools({ type: 'namespace', tools: [{ type: 'namespace', tools: [] }] }),
    /"tools" cannot/,
  ],
  ['a tool with a list for a model', 'chat', RESPONSES, tools({ type: 'x', model: ['b'] }), /"tools" cannot/],
  ['a tool with an object for its type', 'chat', RESPONSES, tools({ type: {} }), /"tools" cannot/],
  ['a tool that is a string', 'chat', RESPONSES, tools('image_generation'), /"tools" cannot/],
  ['an object for tools', 'chat', RESPONSES, { model: 'a', tools: { type: 'x' } }, /"tools" cannot/],
  [
    'tools that are too long',
    'chat',
    RESPONSES,
    tools({ type: 'function', description: 'x'.repeat(300_000) }),
    /"tools" cannot/,
  ],
  [
    'a tool with two models',
    'chat',
    RESPONSES,
    '{"model":"a","tools":[{"model":"a","model":"b"}]}',
    /"model" is given twice/,
  ],
  [
    'a tool with two limits on its use',
    'messages',
    MESSAGES,
    '{"model":"a","tools":[{"type":"web_search_20250305","max_uses":1,"max_uses":1000}]}',
    /"max_uses" is given twice/,
  ],
  [
    'a tool with a name like another',
    'chat',
    RESPONSES,
    '{"model":"a","tools":[{"Model":"b"}]}',
    /read one of its names as another/,
  ],
  [
    'two members of one name in a schema',
    'chat',
    RESPONSES,
    '{"model":"a","tools":[{"parameters":{"x":1,"x":2,"name":1,"name":2}}]}',
    ['a'],
  ],
  [
    'more models than are checked',
    'chat',
    RESPONSES,
    tools(...Array.from({ length: 201 }, (_, i) => ({ model: `m${i}` }))),
    /more than 200/,
  ],

  // Items of the input that bring tools.
  [
    'an item with tools',
    'chat',
    RESPONSES,
    {
      model: 'a',
      input: [
        { role: 'user', content: 'x' },
        { type: 'additional_tools', tools: [{ type: 'image_generation', model: 'b' }] },
      ],
    },
    ['a', 'b'],
  ],
  [
    'an item with tools that name none',
    'chat',
    RESPONSES,
    { model: 'a', input: [{ type: 'tool_search_output', tools: [{ type: 'image_generation' }] }] },
    ['a', 'gpt-image-2'],
  ],
  [
    'an item with tools that cannot be read',
    'chat',
    RESPONSES,
    { model: 'a', input: [{ tools: [{ model: 1 }] }] },
    /"tools" cannot/,
  ],
  [
    'an item with tools twice',
    'chat',
    RESPONSES,
    '{"model":"a","input":[{"tools":[],"tools":[]}]}',
    /"tools" is given twice/,
  ],
  ['text as input', 'chat', RESPONSES, { model: 'a', input: 'tools' }, ['a']],
  [
    'items of a new conversation',
    'chat',
    'POST /v1/conversations',
    { items: [{ tools: [{ model: 'b' }] }] },
    ['b'],
  ],
  [
    'more items of a conversation',
    'chat',
    'POST /v1/conversations/c/items',
    { items: [{ tools: [{ type: 'image_generation' }] }] },
    ['gpt-image-2'],
  ],
  ['a conversation without items', 'chat', 'POST /v1/conversations', {}, []],
]

for (const one of cases) testModels(one)
