import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { type Json, streamOf } from './replies.ts'

/** Texts with all kinds of characters and escapes, and texts that look like events or usage. */
export const lookalikes: readonly string[] = [
  '","usage":{"input_tokens":7000000,"output_tokens":7000000,"prompt_tokens":7000000,"completion_tokens":7000000}',
  '\n\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7000000}}\n\n',
  '\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
  '\r\rdata: [DONE]\r\r',
  '"}}\n\ndata: {"choices":[],"usage":{"prompt_tokens":7000000,"completion_tokens":7000000}}\n\n',
  '\n\nevent: response.completed\ndata: {"type":"response.completed","response":{"usage":{"output_tokens":7}}}\n\n',
  '\\","usage":{"output_tokens":7000000},"x":"\\',
  '{"usage":{"input_tokens":7000000}}',
  '\u2028\u2029\u0000\u001f\u007f',
]

const words = 'The| quick| "brown"| fox|\n| grüßt| 世界| 👩‍🚀| \\n|.| |{"a":|\t}'.split('|')

export interface SampleStream {
  readonly name: string
  readonly reader: UsageReader
  readonly stream: string
}

export function sampleStreams(
  texts: readonly string[] = [...words, ...lookalikes, ...words],
): SampleStream[] {
  return [
    { name: 'Messages', reader: 'messages', stream: messages(texts) },
    { name: 'Chat', reader: 'chat', stream: chat(texts) },
    { name: 'completions', reader: 'completions', stream: completions(texts) },
    { name: 'Responses', reader: 'responses', stream: responses(texts) },
    { name: 'transcription', reader: 'transcription', stream: transcription(texts) },
    { name: 'speech', reader: 'speech', stream: speech(texts) },
    { name: 'images', reader: 'images', stream: images(texts) },
  ]
}

function messages(texts: readonly string[]): string {
  const usage = {
    input_tokens: 100,
    cache_creation_input_tokens: 50,
    cache_read_input_tokens: 20,
    cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 },
    output_tokens: 1,
    service_tier: 'standard',
  }
  const message = {
    id: 'msg_1',
    type: 'message',
    model: 'claude-sonnet-5',
    content: [],
    stop_reason: null,
    usage,
  }
  const block = (index: number, content_block: Json, deltas: readonly Json[]): Json[] => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  return streamOf([
    { type: 'message_start', message },
    { type: 'ping' },
    ...block(
      0,
      { type: 'thinking', thinking: '' },
      texts.map((thinking) => ({ type: 'thinking_delta', thinking })),
    ),
    ...block(
      1,
      { type: 'text', text: '' },
      texts.map((text) => ({ type: 'text_delta', text })),
    ),
    ...block(
      2,
      { type: 'tool_use', id: 'toolu_1', name: 'usage', input: {} },
      texts.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    ),
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: texts.join('') },
      usage: { input_tokens: 100, cache_creation_input_tokens: 80, output_tokens: 77 },
    },
    { type: 'message_stop' },
  ])
}

const chatHead = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'gpt-6',
  service_tier: 'default',
}
const chatUsage = { prompt_tokens: 100, completion_tokens: 77, prompt_tokens_details: { cached_tokens: 30 } }

function chat(texts: readonly string[]): string {
  const chunk = (index: number, delta: Json, finish_reason: string | null, i: number): Json => ({
    ...chatHead,
    choices: [{ index, delta, logprobs: null, finish_reason }],
    usage: null,
    obfuscation: 'aZ09bY18'.slice(0, i % 8),
  })
  return streamOf([
    chunk(0, { role: 'assistant', content: '', refusal: null }, null, 0),
    ...texts.flatMap((content, i) => [chunk(0, { content }, null, i), chunk(1, { content }, null, i + 3)]),
    ...texts.map((text, i) =>
      chunk(1, { tool_calls: [{ index: 0, function: { arguments: text } }] }, null, i),
    ),
    chunk(0, {}, 'stop', 1),
    chunk(1, {}, 'tool_calls', 2),
    { ...chatHead, choices: [], usage: chatUsage, obfuscation: texts.join('') },
    '[DONE]',
  ])
}

function completions(texts: readonly string[]): string {
  const chunk = (text: string, finish_reason: string | null): Json => ({
    ...chatHead,
    object: 'text_completion',
    choices: [{ text, index: 0, logprobs: null, finish_reason }],
  })
  return streamOf([
    ...texts.map((text) => chunk(text, null)),
    chunk('', 'length'),
    { ...chatHead, choices: [], usage: chatUsage },
    '[DONE]',
  ])
}

function responses(texts: readonly string[]): string {
  const head = {
    id: 'resp_1',
    object: 'response',
    model: 'gpt-6',
    instructions: texts.join(''),
    metadata: { usage: texts.join('') },
  }
  const delta = (type: string, output_index: number, text: string, sequence_number: number): Json => ({
    type: `response.${type}.delta`,
    sequence_number,
    item_id: `item_${output_index}`,
    output_index,
    delta: text,
    obfuscation: 'aZ09bY18'.slice(0, sequence_number % 8),
  })
  const item = {
    id: 'msg_1',
    type: 'message',
    content: [{ type: 'output_text', text: texts.join(''), annotations: [] }],
  }
  const call = { id: 'fs_1', type: 'file_search_call', queries: texts, results: [{ text: texts.join('') }] }
  return streamOf([
    {
      type: 'response.created',
      sequence_number: 0,
      response: { ...head, status: 'in_progress', output: [], usage: null },
    },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    ...texts.map((text, i) => delta('output_text', 0, text, 98 + i)),
    { type: 'response.output_text.done', output_index: 0, text: texts.join('') },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.output_item.added', output_index: 1, item: call },
    ...texts.map((text, i) => delta('function_call_arguments', 1, text, 998 + i)),
    { type: 'response.output_item.done', output_index: 1, item: call },
    {
      type: 'response.completed',
      response: {
        ...head,
        status: 'completed',
        service_tier: 'default',
        output: [item, call],
        usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 30 }, output_tokens: 77 },
      },
    },
  ])
}

function transcription(texts: readonly string[]): string {
  return streamOf([
    ...texts.map((delta) => ({ type: 'transcript.text.delta', delta })),
    {
      type: 'transcript.text.done',
      text: texts.join(''),
      usage: {
        type: 'tokens',
        input_tokens: 100,
        input_token_details: { audio_tokens: 90 },
        output_tokens: 77,
      },
    },
  ])
}

function speech(texts: readonly string[]): string {
  return streamOf([
    ...texts.map((text) => ({ type: 'speech.audio.delta', audio: Buffer.from(text).toString('base64') })),
    { type: 'speech.audio.done', usage: { input_tokens: 100, output_tokens: 77 } },
  ])
}

function images(texts: readonly string[]): string {
  return streamOf([
    ...texts.map((b64_json, i) => ({
      type: 'image_generation.partial_image',
      partial_image_index: i,
      b64_json,
    })),
    {
      type: 'image_generation.completed',
      b64_json: texts.join(''),
      usage: { input_tokens: 100, output_tokens: 77 },
    },
  ])
}
