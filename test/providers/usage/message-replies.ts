import { words } from '../../support/words.ts'
import { type Json, streamOf } from './replies.ts'

const STREAM_END_MEMBERS = words(`
  input_tokens cache_creation_input_tokens cache_read_input_tokens output_tokens output_tokens_details
  server_tool_use iterations fallback_credit
`)

export interface MessageReply {
  readonly usage: Json
  readonly model?: string
  readonly stopReason?: string
  readonly content?: readonly Json[]
  readonly container?: Json
  /** The usage in `message_start`, if it differs from the final one in more than the output. */
  readonly startUsage?: Json
}

export function messageBody(reply: MessageReply): Json {
  return {
    id: 'msg_01',
    type: 'message',
    role: 'assistant',
    model: reply.model ?? 'claude-sonnet-5',
    content: reply.content ?? [text],
    stop_reason: reply.stopReason ?? 'end_turn',
    stop_sequence: null,
    container: reply.container ?? null,
    usage: reply.usage,
  }
}

/** The same reply as a stream, in which each event has only its part of the usage. */
export function messageStream(reply: MessageReply): string {
  const content = reply.content ?? [text]
  const start = reply.startUsage ?? { ...reply.usage, output_tokens: 1 }
  const { container, ...begun } = reply
  const message = messageBody({ ...begun, usage: { ...start, iterations: undefined }, content: [] })
  const end = Object.fromEntries(
    Object.entries(reply.usage).filter(([name]) => STREAM_END_MEMBERS.includes(name)),
  )
  return streamOf([
    {
      type: 'message_start',
      message: { ...message, stop_reason: null, model: reply.model ?? 'claude-sonnet-5' },
    },
    { type: 'ping' },
    ...content.flatMap(blockEvents),
    {
      type: 'message_delta',
      delta: {
        stop_reason: reply.stopReason ?? 'end_turn',
        stop_sequence: null,
        container: container ?? null,
      },
      usage: end,
    },
    { type: 'message_stop' },
  ])
}

function blockEvents(block: Json, index: number): Json[] {
  const text = typeof block['text'] === 'string' ? block['text'] : ''
  const pieces = text.match(/.{1,5}/gsu) ?? []
  return [
    { type: 'content_block_start', index, content_block: text === '' ? block : { ...block, text: '' } },
    ...pieces.map((piece) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text: piece },
    })),
    { type: 'content_block_stop', index },
  ]
}

export const plain: Json = {
  input_tokens: 100,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 40,
  server_tool_use: null,
  service_tier: 'standard',
  inference_geo: 'global',
  speed: null,
}

export const entry = (
  type: string,
  model: string | null,
  input: number,
  output: number,
  more: Json = {},
): Json => ({
  type,
  ...(type === 'compaction' ? {} : { model }),
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_creation: null,
  ...more,
})

/** The block at which one model replaced another. */
export const fallback = (from: string, to: string): Json => ({
  type: 'fallback',
  from: { model: from },
  to: { model: to },
  trigger: { type: 'refusal' },
})

export const text: Json = { type: 'text', text: 'Hello, world' }
