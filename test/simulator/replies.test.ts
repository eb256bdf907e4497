import assert from 'node:assert/strict'
import { audioSeconds } from '../../simulator/audio-formats.ts'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/text.ts'
import { closeAfter, test } from '../support/suite.ts'
import { dig, digList, digText } from './dig.ts'
import {
  anthropicHeaders,
  chatBody,
  messageBody,
  parseEvents,
  post,
  postEvents,
  postJson,
  type Sent,
} from './wire-client.ts'

const simulator = await startSimulator()
closeAfter(simulator)

const complete = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/chat/completions', chatBody(more), sent)
const streamChunks = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/chat/completions', chatBody({ stream: true, ...more }), sent)

test('a completion reports the tokens of its own texts, its snapshot and its tier', async () => {
  const { status, headers, json } = await complete({ n: 3 })
  assert.equal(status, 200)
  assert.match(headers.get('x-request-id') ?? '', /^req_[\da-f]{32}$/)
  assert.equal(dig(json, 'model'), 'gpt-4o-2024-08-06')
  assert.equal(dig(json, 'service_tier'), 'default')
  const texts = digList(json, 'choices').map((choice) => digText(choice, 'message.content'))
  assert.ok(texts.length === 3 && new Set(texts).size > 1)
  const completion = texts.reduce((sum, text) => sum + countTokens(text), 0)
  const prompt = 4 + countTokens('Tell me about tollgates.')
  assert.equal(dig(json, 'usage.prompt_tokens'), prompt)
  assert.equal(dig(json, 'usage.completion_tokens'), completion)
  assert.equal(dig(json, 'usage.total_tokens'), prompt + completion)
})

test('a stream with include_usage has null usage in each chunk, and usage once at the end without choices', async () => {
  const stream_options = { include_usage: true, include_obfuscation: false }
  const events = (await streamChunks({ n: 2, stream_options })).slice(0, -1)
  for (const { data } of events.slice(0, -1)) assert.equal(dig(data, 'usage'), null)
  assert.ok(events.every(({ data }) => dig(data, 'obfuscation') === undefined))
  const whole = await complete({ n: 2 })
  assert.deepEqual(dig(events.at(-1)?.data, 'choices'), [])
  assert.deepEqual(dig(events.at(-1)?.data, 'usage'), dig(whole.json, 'usage'))
  for (const index of [0, 1]) {
    const chunks = events.filter(({ data }) => dig(data, 'choices.0.index') === index)
    const words = chunks.map(({ data }) => dig(data, 'choices.0.delta.content') ?? '').join('')
    assert.equal(words, dig(whole.json, `choices.${index}.message.content`))
  }
})

const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/messages', messageBody(more), { headers: anthropicHeaders, ...sent })
const stream = (more: object = {}, sent: Sent = {}) =>
  postEvents(simulator, '/v1/messages', messageBody({ stream: true, ...more }), {
    headers: anthropicHeaders,
    ...sent,
  })

test('a message reports the tokens of its own text and the full usage object', async () => {
  const { status, headers, json } = await create({ speed: 'fast', inference_geo: 'us' })
  assert.equal(status, 200)
  assert.match(headers.get('request-id') ?? '', /^req_011C\w{20}$/)
  assert.equal(headers.get('anthropic-ratelimit-requests-limit'), '4000')
  assert.equal(dig(json, 'model'), 'claude-sonnet-5-5')
  assert.equal(dig(json, 'stop_reason'), 'end_turn')
  assert.deepEqual(dig(json, 'usage'), {
    input_tokens: 4 + countTokens('Tell me about tollgates.'),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: countTokens(digText(json, 'content.0.text')),
    output_tokens_details: { thinking_tokens: 0 },
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: 'us',
    speed: 'fast',
  })
})

test("a stream has upstream's events in order, the same words, and cumulative usage at the end", async () => {
  const events = await stream()
  const names = events.map(({ event }) => event)
  assert.deepEqual(names.slice(0, 3), ['message_start', 'content_block_start', 'ping'])
  assert.deepEqual(names.slice(-3), ['content_block_stop', 'message_delta', 'message_stop'])
  assert.ok(names.slice(3, -3).every((name) => name === 'content_block_delta'))
  for (const { event, data } of events) assert.equal(dig(data, 'type'), event)
  const whole = (await create()).json
  const words = events.map(({ data }) => dig(data, 'delta.text') ?? '')
  assert.equal(words.join(''), dig(whole, 'content.0.text'))
  assert.equal(dig(events[0]?.data, 'message.usage.output_tokens'), 1)
  assert.equal(dig(events[0]?.data, 'message.usage.service_tier'), 'standard')
  const end = dig(events.at(-2)?.data, 'usage')
  assert.equal(dig(end, 'output_tokens'), dig(whole, 'usage.output_tokens'))
  for (const name of ['cache_creation', 'service_tier', 'inference_geo', 'speed']) {
    assert.equal(dig(end, name), undefined)
  }
})

// 45 characters are three seconds of speech.
const speech = {
  ...{ model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Please have your coins ready at the tollgate.' },
}
const say = async (more: object) => {
  const response = await post(simulator, '/v1/audio/speech', { ...speech, ...more })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('speech is audio as long as its text takes to say, in each supported format', async () => {
  for (const [response_format, contentType, head, seconds] of [
    ['mp3', 'audio/mpeg', 'fff3c4c4', 3.12],
    ['wav', 'audio/wav', '52494646', 3],
  ] as const) {
    const { response, bytes } = await say({ response_format })
    assert.equal(response.headers.get('content-type'), contentType)
    assert.equal(response.headers.get('content-length'), null)
    assert.equal(bytes.toString('hex', 0, 4), head)
    assert.equal(audioSeconds(bytes), seconds)
  }
  assert.equal((await say({ response_format: 'pcm' })).bytes.length, 3 * 48_000)
  assert.equal((await say({ response_format: 'flac' })).response.status, 400)
})

const sendForm = (path: string, fields: Record<string, string>, file?: Buffer) => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  if (file !== undefined) form.set('file', new Blob([new Uint8Array(file)]), 'a.wav')
  return fetch(`${simulator.chatUrl}${path}`, { method: 'POST', body: form })
}

test('a transcription counts audio and text tokens, whole and streamed, and the oldest model counts seconds', async () => {
  const { bytes } = await say({ response_format: 'wav' })
  const hear = (more: Record<string, string>) =>
    sendForm('/audio/transcriptions', { model: 'gpt-4o-transcribe', prompt: 'toll', ...more }, bytes)
  const json: unknown = await (await hear({})).json()
  const text = digText(json, 'text')
  const output_tokens = countTokens(text)
  const input_token_details = { audio_tokens: 30, text_tokens: 1 }
  const total_tokens = 31 + output_tokens
  const usage = { type: 'tokens', input_tokens: 31, input_token_details, output_tokens, total_tokens }
  assert.deepEqual(dig(json, 'usage'), usage)
  const events = parseEvents(await (await hear({ stream: 'true' })).text())
  assert.equal(events.map(({ data }) => dig(data, 'delta') ?? '').join(''), text)
  assert.deepEqual(events.at(-1)?.data, { type: 'transcript.text.done', text, usage })
  assert.equal(await (await hear({ response_format: 'text' })).text(), `${text}\n`)
  const oldest: unknown = await (await hear({ model: 'whisper-1' })).json()
  assert.deepEqual(dig(oldest, 'usage'), { type: 'duration', seconds: 3 })
  const noFile = await sendForm('/audio/transcriptions', { model: 'whisper-1' })
  assert.equal(dig(await noFile.json(), 'error.param'), 'file')
})
