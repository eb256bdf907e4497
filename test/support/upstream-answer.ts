/** A function of the call alone: a test that knows the call knows every byte of the reply. */

export type CallSurface = 'messages' | 'chat'

export const MODEL = { messages: 'claude-haiku-5-5', chat: 'gpt-6-luna' } as const

/** Output of either model costs $0.50 per million. The replies report no input. */
export const NANOS_PER_TOKEN = 500n

export interface UpstreamAnswer {
  readonly type: string
  readonly pieces: readonly string[]
}

export function answerOf(
  surface: CallSurface,
  stream: boolean,
  name: string,
  outputTokens: number,
): UpstreamAnswer {
  if (stream) {
    const pieces =
      surface === 'messages' ? messageEvents(name, outputTokens) : chunkEvents(name, outputTokens)
    return { type: 'text/event-stream', pieces }
  }
  const whole = surface === 'messages' ? message(name, outputTokens) : completion(name, outputTokens)
  return { type: 'application/json', pieces: [JSON.stringify(whole)] }
}

export function bytesOf(surface: CallSurface, stream: boolean, name: string, outputTokens: number): string {
  return answerOf(surface, stream, name, outputTokens).pieces.join('')
}

function message(name: string, outputTokens: number): object {
  return {
    id: `msg_${name}`,
    type: 'message',
    role: 'assistant',
    model: MODEL.messages,
    content: [{ type: 'text', text: `You may pass, ${name}.` }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: outputTokens },
  }
}

function messageEvents(name: string, outputTokens: number): string[] {
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const text = (word: string) =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word } })
  const start = { ...message(name, 0), content: [], stop_reason: null }
  return [
    event('message_start', { message: start }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...['You ', 'may ', 'pass, ', `${name}.`].map(text),
    event('content_block_stop', { index: 0 }),
    event('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: outputTokens },
    }),
    event('message_stop', {}),
  ]
}

function usageOf(outputTokens: number): object {
  return { prompt_tokens: 0, completion_tokens: outputTokens, total_tokens: outputTokens }
}

function completion(name: string, outputTokens: number): object {
  const said = { role: 'assistant', content: `You may pass, ${name}.` }
  return {
    id: `chatcmpl-${name}`,
    object: 'chat.completion',
    created: 1,
    model: MODEL.chat,
    choices: [{ index: 0, message: said, finish_reason: 'stop' }],
    usage: usageOf(outputTokens),
  }
}

function chunkEvents(name: string, outputTokens: number): string[] {
  const common = { id: `chatcmpl-${name}`, object: 'chat.completion.chunk', created: 1, model: MODEL.chat }
  const chunk = (more: object) => `data: ${JSON.stringify({ ...common, ...more })}\n\n`
  const delta = (content: string, finish: string | null) =>
    chunk({ choices: [{ index: 0, delta: { content }, finish_reason: finish }], usage: null })
  return [
    ...['You ', 'may ', 'pass, '].map((word) => delta(word, null)),
    delta(`${name}.`, 'stop'),
    chunk({ choices: [], usage: usageOf(outputTokens) }),
    'data: [DONE]\n\n',
  ]
}
