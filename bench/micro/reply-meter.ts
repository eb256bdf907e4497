import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { createMeter } from '../../src/providers/surfaces.ts'

/**
 * The cost of metering a whole reply, in microseconds: of this tree, and of others whose folders are given, in turns.
 * Run: node bench/micro/reply-meter.ts [folder of another revision …]
 */

type CreateMeter = typeof createMeter

const MEASURE_MS = 40
const ROUNDS = 15
/** The size of chunks as they come from a socket. */
const CHUNK_BYTES = 64 * 1024

const [JSON_TYPE, EVENTS] = ['application/json', 'text/event-stream']
const sentence = 'The quick brown fox said "hi" to the lazy dog.\nIt was 13 o’clock, and they sent Grüße. '
const prose = (chars: number): string => sentence.repeat(Math.ceil(chars / sentence.length)).slice(0, chars)
const image = Buffer.alloc(150_000, 'image').toString('base64')

function message(content: readonly object[]): string {
  const cache_creation = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }
  const tokens = { input_tokens: 2095, cache_creation_input_tokens: 0, cache_read_input_tokens: 1024 }
  const usage = { ...tokens, cache_creation, output_tokens: 503, service_tier: 'standard' }
  const head = { id: 'msg_01XFDUDYJgAACzvnptvVoYEL', type: 'message', role: 'assistant', model: 'claude' }
  return JSON.stringify({ ...head, content, stop_reason: 'end_turn', stop_sequence: null, usage })
}

function completion(content: string, logprobs: object | null = null): string {
  const prompt_tokens_details = { cached_tokens: 0, audio_tokens: 0 }
  const usage = { prompt_tokens: 1117, completion_tokens: 46, total_tokens: 1163, prompt_tokens_details }
  const choice = { index: 0, message: { role: 'assistant', content, refusal: null, annotations: [] } }
  const choices = [{ ...choice, logprobs, finish_reason: 'stop' }]
  const head = { id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT', object: 'chat.completion', model: 'gpt-4.1' }
  return JSON.stringify({ ...head, choices, usage, service_tier: 'default' })
}

function response(text: string): object {
  const output = [
    { type: 'message', id: 'msg_67c', content: [{ type: 'output_text', text, annotations: [] }] },
  ]
  const usage = { input_tokens: 36, input_tokens_details: { cached_tokens: 0 }, output_tokens: 87 }
  return {
    id: 'resp_67c',
    object: 'response',
    status: 'completed',
    error: null,
    model: 'gpt-4.1',
    output,
    usage,
  }
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** No two of these chunks differ in their text alone, so the meter knows none by its bytes. */
function chunk(i: number): string {
  const logprobs = { content: [{ token: 'x', logprob: -0.1 - i }] }
  const choices = [{ index: 0, delta: { content: `word ${i}` }, logprobs, finish_reason: null }]
  return event({ id: 'chatcmpl-CxQ9', object: 'chat.completion.chunk', model: 'gpt-5', choices, usage: null })
}

const numbers = Array.from({ length: 1536 }, (_, i) => Math.sin(i) / 30)
const blocks = Array.from({ length: 6000 }, (_, i) => ({ type: 'text', text: `number ${i}${prose(120)}` }))
const tokens = Array.from({ length: 4000 }, (_, i) => ({ token: `t${i}`, logprob: -0.3, bytes: [72, 101] }))
const embeddings = Array.from({ length: 32 }, (_, index) => ({
  object: 'embedding',
  index,
  embedding: numbers,
}))

const replies: Readonly<Record<string, readonly [Parameters<CreateMeter>[0], string, string]>> = {
  'message of 2 kB': ['messages', JSON_TYPE, message([{ type: 'text', text: prose(1500) }])],
  'completion of 2 kB': ['chat', JSON_TYPE, completion(prose(1500))],
  'response of 2 kB': ['responses', JSON_TYPE, JSON.stringify(response(prose(1500)))],
  'message of 20 kB': ['messages', JSON_TYPE, message([{ type: 'text', text: prose(20_000) }])],
  'message of 1 MB, one text': ['messages', JSON_TYPE, message([{ type: 'text', text: prose(1_000_000) }])],
  'message of 1 MB, many blocks': ['messages', JSON_TYPE, message(blocks)],
  'completion with log probabilities': ['chat', JSON_TYPE, completion('x', { content: tokens })],
  'embeddings of 1 MB': [
    'embeddings',
    JSON_TYPE,
    JSON.stringify({ data: embeddings, model: 'e', usage: { prompt_tokens: 8 } }),
  ],
  '100 events of a chat, all parsed': [
    'chat',
    EVENTS,
    Array.from({ length: 100 }, (_, i) => chunk(i)).join(''),
  ],
  'last event of a response, 20 kB': [
    'responses',
    EVENTS,
    event({ type: 'response.completed', response: response(prose(20_000)) }),
  ],
  'event with an image of 200 kB': [
    'images',
    EVENTS,
    event({
      type: 'image_generation.completed',
      b64_json: image,
      usage: { input_tokens: 5, output_tokens: 9 },
    }),
  ],
}

/** The time that this thread computed: other load on the machine does not count. */
function busyMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The time of one reply, in microseconds. */
function time(work: () => void): number {
  const start = busyMs()
  let runs = 0
  let elapsedMs = 0
  do {
    for (let i = 0; i < 5; i++) work()
    runs += 5
    elapsedMs = busyMs() - start
  } while (elapsedMs < MEASURE_MS)
  return (elapsedMs * 1000) / runs
}

const folders = [
  resolve(import.meta.dirname, '../..'),
  ...process.argv.slice(2).map((folder) => resolve(folder)),
]
const creators: CreateMeter[] = []
for (const folder of folders) {
  // The path of the meter in earlier revisions.
  const before = `${folder}/src/providers/usage/create-meter.ts`
  const path = existsSync(before) ? before : `${folder}/src/providers/surfaces.ts`
  const module = (await import(path)) as { createMeter: CreateMeter }
  creators.push(module.createMeter)
}

for (const [name, [reader, contentType, text]] of Object.entries(replies)) {
  const bytes = Buffer.from(text)
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) chunks.push(bytes.subarray(at, at + CHUNK_BYTES))
  const best = creators.map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [k, create] of creators.entries()) {
      const us = time(() => {
        const meter = create(reader, { status: 200, contentType })
        for (const piece of chunks) meter.write(piece)
        const { faults } = meter.end(true)
        if (faults.length > 0) throw new Error(faults.join())
      })
      best[k] = Math.min(best[k] as number, us)
    }
  }
  console.log(name.padEnd(36) + best.map((us) => us.toFixed(1).padStart(10)).join(''))
}
