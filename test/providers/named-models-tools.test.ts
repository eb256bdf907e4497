import { type ModelsCase, testCase, testModels } from './models-case.ts'

const LONG = 'm'.repeat(257)
const MESSAGES = 'POST /v1/messages'
const RESPONSES = 'POST /v1/responses'
const tools = (...list: unknown[]) => ({ model: 'a', tools: list })

const definition = {
  role: 'user',
  content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: { model: 'b' } } }],
}

testModels(String.raw`
messages POST /v1/messages
  a tool that a message defines | {"model":"a","messages":[{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"model":"b"}}}]}]} | ~ may contain tools
  fallbacks | {"model":"a","fallbacks":[{"model":"b","max_tokens":1},"c"]} | = a, b, c
  no fallbacks | {"model":"a","fallbacks":null} | = a
  fallbacks that upstream chooses | {"model":"a","fallbacks":"default"} | ~ Upstream chooses
  a fallback without a model | {"model":"a","fallbacks":[{}]} | ~ "fallbacks" is not a model name
  a fallback with a number | {"model":"a","fallbacks":[{"model":1}]} | ~ "fallbacks" is not a model name
  an object for fallbacks | {"model":"a","fallbacks":{"model":"b"}} | ~ "fallbacks" is not a model name
  a fallback twice over | {"model":"a","fallbacks":[{"model":"a","model":"b"}]} | ~ "model" is given twice
  tools that name nothing | {"model":"a","tools":[{"name":"f","input_schema":{"model":"x"}}]} | = a
  no tools | {"model":"a","tools":null} | = a
  an advisor | {"model":"a","tools":[{"type":"advisor_20260301","name":"advisor","model":"b"}]} | = a, b
  an advisor without a model | {"model":"a","tools":[{"type":"advisor_20260301"}]} | ~ "tools" is not a model name
  a tool with two limits on its use | {"model":"a","tools":[{"type":"web_search_20250305","max_uses":1,"max_uses":1000}]} | ~ "max_uses" is given twice
messages POST /v1/messages/count_tokens
  a tool that a message defines which is only counted | {"model":"a","messages":[{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"model":"b"}}}]}]} | = a
chat POST /v1/responses
  an image tool | {"model":"a","tools":[{"type":"image_generation","model":"b"}]} | = a, b
  an image tool without a model | {"model":"a","tools":[{"type":"image_generation"}]} | = a, gpt-image-2
  an image tool with null for a model | {"model":"a","tools":[{"type":"image_generation","model":null}]} | = a, gpt-image-2
  an image tool spelled with escapes | {"model":"a","tools":[{"type":"imag\u0065_generation"}]} | = a, gpt-image-2
  an image tool that has SVG written | {"model":"a","tools":[{"type":"image_generation","model":"b","output_format":"svg","svg":{"model":"c"}}]} | = a, b, c
  an image tool that has SVG written by whom upstream chooses | {"model":"a","tools":[{"type":"image_generation","output_format":"svg"}]} | ~ writes the SVG
  a tool inside a namespace | {"model":"a","tools":[{"type":"namespace","tools":[{"type":"image_generation","model":"b"}]}]} | = a, b
  a namespace inside a namespace | {"model":"a","tools":[{"type":"namespace","tools":[{"type":"namespace","tools":[]}]}]} | ~ "tools" is not a model name
  a tool with a list for a model | {"model":"a","tools":[{"type":"x","model":["b"]}]} | ~ "tools" is not a model name
  a tool with an object for its type | {"model":"a","tools":[{"type":{}}]} | ~ "tools" is not a model name
  a tool that is a string | {"model":"a","tools":["image_generation"]} | ~ "tools" is not a model name
  an object for tools | {"model":"a","tools":{"type":"x"}} | ~ "tools" is not a model name
  a tool with two models | {"model":"a","tools":[{"model":"a","model":"b"}]} | ~ "model" is given twice
  a tool with a name like another | {"model":"a","tools":[{"Model":"b"}]} | ~ read one of its member names differently
  two members of one name in a schema | {"model":"a","tools":[{"parameters":{"x":1,"x":2,"name":1,"name":2}}]} | = a
  an item with tools | {"model":"a","input":[{"role":"user","content":"x"},{"type":"additional_tools","tools":[{"type":"image_generation","model":"b"}]}]} | = a, b
  an item with tools that name none | {"model":"a","input":[{"type":"tool_search_output","tools":[{"type":"image_generation"}]}]} | = a, gpt-image-2
  an item with tools that cannot be read | {"model":"a","input":[{"tools":[{"model":1}]}]} | ~ "tools" is not a model name
  an item with tools twice | {"model":"a","input":[{"tools":[],"tools":[]}]} | ~ "tools" is given twice
  text as input | {"model":"a","input":"tools"} | = a
chat POST /v1/conversations
  items of a new conversation | {"items":[{"tools":[{"model":"b"}]}]} | = b
  a conversation without items | {} | =
chat POST /v1/conversations/c/items
  more items of a conversation | {"items":[{"tools":[{"type":"image_generation"}]}]} | = gpt-image-2
`)

const cases: readonly ModelsCase[] = [
  [
    'a tool that a message of a batch defines',
    'messages',
    'POST /v1/messages/batches',
    { requests: [{ custom_id: 'x', params: { model: 'a', messages: [definition] } }] },
    /may contain tools/,
  ],
  [
    'a fallback that is too long',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: [LONG] },
    /"fallbacks" is not a model name/,
  ],
  [
    'fallbacks that cannot be read to the end',
    'messages',
    MESSAGES,
    { model: 'a', fallbacks: ['b'.repeat(300_000)] },
    /"fallbacks" is not a model name/,
  ],
  [
    'overlong tools',
    'chat',
    RESPONSES,
    tools({ type: 'function', description: 'x'.repeat(300_000) }),
    /"tools" is not a model name/,
  ],
  [
    'more models than are checked',
    'chat',
    RESPONSES,
    tools(...Array.from({ length: 201 }, (_, i) => ({ model: `m${i}` }))),
    /more than 200/,
  ],
]

for (const one of cases) testCase(one)
