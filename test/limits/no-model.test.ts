import assert from 'node:assert/strict'
import type { Endpoint, UsageReader } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunked, sized } from '../support/wire-bytes.ts'

/** Calls every metered endpoint without a model, with null and with values that are not a name. */

const upstream = await ScriptedUpstream.start()
const options = { messagesUrl: upstream.url, messagesKey: 'pm', chatUrl: `${upstream.url}/v1`, chatKey: 'pc' }
const open = await startGateway(options)
const enforced = await startGateway(options)
await enforced.prepay(1_000)
closeAfter(open, enforced, upstream)

const TEXT = { input_tokens: 1_000, output_tokens: 500 }
const CHAT_TEXT = { prompt_tokens: 1_000, completion_tokens: 500 }
const IMAGE = {
  input_tokens: 150,
  input_tokens_details: { text_tokens: 100, image_tokens: 50 },
  output_tokens: 1_000,
}
const AUDIO = {
  type: 'tokens',
  input_tokens: 1_000,
  input_token_details: { audio_tokens: 1_000, text_tokens: 0 },
  output_tokens: 100,
}
const SPOKEN = { input_tokens: 100, output_tokens: 1_000 }

interface Reply {
  /** The model served, if the reply can name it. */
  readonly model?: string
  /** The list price of the reply, calculated by hand, at that model or the endpoint's default. */
  readonly listUsd: number
  readonly body?: (model: object) => object
  readonly events?: (model: object) => readonly object[]
}

const REPLIES: Readonly<Partial<Record<UsageReader, Reply>>> = {
  messages: {
    model: 'claude-opus-5',
    // 1,000 × $5/M + 500 × $25/M
    listUsd: 0.0175,
    body: (model) => ({ type: 'message', content: [{ type: 'text', text: 'Hi' }], ...model, usage: TEXT }),
    events: (model) => [
      { type: 'message_start', message: { type: 'message', content: [], ...model, usage: TEXT } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: TEXT },
      { type: 'message_stop' },
    ],
  },
  chat: {
    model: 'gpt-5.6-sol',
    // 1,000 × $4/M + 500 × $20/M
    listUsd: 0.014,
    body: (model) => ({ choices: [], ...model, usage: CHAT_TEXT }),
    events: (model) => [{ choices: [], ...model, usage: CHAT_TEXT }],
  },
  completions: {
    model: 'davinci-002',
    // 1,500 × $2/M
    listUsd: 0.003,
    body: (model) => ({ choices: [], ...model, usage: CHAT_TEXT }),
    events: (model) => [{ choices: [], ...model, usage: CHAT_TEXT }],
  },
  responses: {
    model: 'gpt-5.6-sol',
    listUsd: 0.014,
    body: (model) => ({ status: 'completed', output: [], ...model, usage: TEXT }),
    events: (model) => [
      { type: 'response.completed', response: { status: 'completed', output: [], ...model, usage: TEXT } },
    ],
  },
  // gpt-6-astra: 1,000 × $10/M + 500 × $50/M
  compaction: { listUsd: 0.035, body: () => ({ object: 'response.compaction', output: [], usage: TEXT }) },
  decisions: {
    model: 'gpt-6-luna',
    // 1,000 × $0.10/M
    listUsd: 0.0001,
    body: (model) => ({ ...model, usage: TEXT }),
  },
  embeddings: {
    model: 'text-embedding-3-small',
    // 1,000 × $0.02/M
    listUsd: 0.00002,
    body: (model) => ({ object: 'list', data: [], ...model, usage: { prompt_tokens: 1_000 } }),
  },
  images: {
    // gpt-image-2: 100 × $5/M + 50 × $8/M + 1,000 × $30/M
    listUsd: 0.0309,
    body: () => ({ created: 1, data: [], usage: IMAGE }),
    events: () => [{ type: 'image_generation.completed', usage: IMAGE }],
  },
  // gpt-4o-mini-tts: 100 × $0.60/M + 1,000 × $12/M
  speech: { listUsd: 0.01206, events: () => [{ type: 'speech.audio.done', usage: SPOKEN }] },
  transcription: {
    // gpt-4o-transcribe: 1,000 × $6/M + 100 × $10/M
    listUsd: 0.007,
    body: () => ({ text: 'Hi', usage: AUDIO }),
    events: () => [{ type: 'transcript.text.done', text: 'Hi', usage: AUDIO }],
  },
}

const metered = allEndpoints().flatMap((endpoint) => {
  if (endpoint.method === 'WS' || endpoint.billing !== 'metered') return []
  const reply = REPLIES[endpoint.usage]
  assert.ok(reply, `${endpoint.template} is metered, and no reply is known for it`)
  return [{ endpoint, reply }]
})

/** The values of "model" in the request; `file` is a form with a file as that field. */
const MODELS: readonly (readonly [says: string, model: unknown])[] = [
  ['no model', undefined],
  ['null', null],
  ['a number', 7],
  ['an object', {}],
  ['a list', []],
  ['a file', new Blob(['gpt-image-2'])],
]

function requestOf({ reads }: Endpoint, model: unknown, stream: boolean): RequestInit | null {
  if (reads === 'multipart' && (model === undefined || model instanceof Blob)) {
    const form = new FormData()
    form.set('prompt', 'a duck')
    form.set('file', new Blob(['x'.repeat(100)]), 'x.mp3')
    if (model instanceof Blob) form.set('model', model, 'model')
    if (stream) form.set('stream', 'true')
    return { body: form }
  }
  if (model instanceof Blob) return null
  const body = { ...(model === undefined ? {} : { model }), ...(stream ? { stream } : {}), input: 'a duck' }
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

async function call(
  gateway: TestGateway,
  key: string,
  endpoint: Endpoint,
  init: RequestInit,
  answer: Buffer,
) {
  const before = upstream.requestCount
  upstream.answer(() => [{ send: answer }])
  const path = endpoint.template.replace(/\{[^}]+\}/g, 'some_id')
  const response = await fetch(gateway.url + path, {
    method: endpoint.method,
    ...init,
    headers: {
      authorization: `Bearer ${key}`,
      ...(endpoint.surface === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}),
      ...(init.headers as Record<string, string> | undefined),
    },
  })
  await response.text()
  return {
    status: response.status,
    sent: upstream.requestCount > before,
    requestId: response.headers.get('x-svc-request-id') ?? '',
  }
}

const asDocument = (body: object): Buffer =>
  sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify(body))
const asEvents = (events: readonly object[]): Buffer =>
  chunked(
    'HTTP/1.1 200 OK',
    ['Content-Type: text/event-stream'],
    [events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''), 'data: [DONE]\n\n'],
  )

/** The replies of an endpoint, streamed and not, each naming its model, another model, or none. */
function answersOf({ model, body, events }: Reply) {
  const namings: readonly (readonly [string, object])[] =
    model === undefined
      ? [['', {}]]
      : [
          ['naming its model', { model }],
          ['naming one without a price', { model: 'nobody-sells-this' }],
          ['naming none', {}],
        ]
  return namings.flatMap(([naming, named]) => [
    ...(body === undefined ? [] : [{ naming, named, stream: false, bytes: asDocument(body(named)) }]),
    ...(events === undefined ? [] : [{ naming, named, stream: true, bytes: asEvents(events(named)) }]),
  ])
}

const kinds: readonly (readonly [says: string, gateway: TestGateway, fields: object])[] = [
  ['a key without limits', open, {}],
  ['a capped key', open, { monthly_budget_usd: 1_000 }],
  ['a key under enforced credit', enforced, {}],
]

for (const [limits, gateway, fields] of kinds) {
  test(`${limits}: a call without a model is refused or billed by its usage`, async () => {
    const { key } = await gateway.createKey('walker', { ...fields })
    let answered = 0
    for (const { endpoint, reply } of metered) {
      for (const { naming, named, stream, bytes } of answersOf(reply)) {
        for (const [says, model] of MODELS) {
          const init = requestOf(endpoint, model, stream)
          if (init === null) continue
          const what = `${endpoint.template}, ${says}, ${stream ? 'events' : 'a document'} ${naming}`
          const { status, sent, requestId } = await call(gateway, key, endpoint, init, bytes)
          if (status >= 400 && !sent) continue
          assert.equal(status, 200, what)
          answered++
          const record = await gateway.manage('GET', `/gateway/v1/requests/${requestId}`)
          assert.equal(record['estimated'], false, what)
          const list = Number(record['list_cost_usd'])
          const isKnown = reply.model === undefined || Object.values(named).includes(reply.model)
          // A reply rated at a substitute model costs at least the endpoint's default.
          if (isKnown) assert.equal(list, reply.listUsd, what)
          else assert.ok(list >= reply.listUsd, `${what}: ${list}`)
          if ('model' in named && !isKnown) assert.equal(record['unpriced'], true, what)
        }
      }
    }
    assert.ok(answered > 40, `${answered} were answered`)
    await assertBalanced(gateway)
  })
}
