import { Agent, request } from 'undici'
import { bytesOf, type CallSurface, MODEL } from '../support/upstream-answer.ts'

export interface ClientCall {
  /** The name is sent as the user agent: upstream records it, and the call's record has it. */
  readonly name: string
  readonly key: string
  readonly surface?: CallSurface
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly tokens?: number
  readonly paceMs?: number
}

export interface ClientReply {
  readonly status: number
  readonly text: string
  header(name: string): string | undefined
}

let connections: Agent | null = null

/** Enough connections that no call waits for another. */
function openConnections(): Agent {
  connections ??= new Agent({ connections: 1_000, headersTimeout: 0, bodyTimeout: 0 })
  return connections
}

/** The next call opens new ones: the files of an area share a process. */
export async function closeConnections(): Promise<void> {
  const open = connections
  connections = null
  await open?.destroy()
}

/** Resolves with the complete reply; rejects if the connection breaks first. */
export async function sendCall(
  nodeUrl: string,
  call: ClientCall,
  signal?: AbortSignal,
): Promise<ClientReply> {
  const {
    name,
    key,
    surface = 'messages',
    stream = false,
    tokens = 200,
    maxTokens = 1_000,
    paceMs = 0,
  } = call
  const isMessages = surface === 'messages'
  const reply = await request(nodeUrl + (isMessages ? '/v1/messages' : '/v1/chat/completions'), {
    dispatcher: openConnections(),
    method: 'POST',
    ...(signal === undefined ? {} : { signal }),
    headers: {
      ...(isMessages ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }),
      'content-type': 'application/json',
      'user-agent': name,
      'x-tokens': String(tokens),
      'x-pace': String(paceMs),
    },
    body: bodyOf(surface, stream, maxTokens),
  })
  const { statusCode: status, headers, trailers } = reply
  const text = await reply.body.text()
  const header = (wanted: string) => {
    const value = headers[wanted] ?? trailers[wanted]
    return Array.isArray(value) ? value[0] : value
  }
  return { status, text, header }
}

function bodyOf(surface: CallSurface, stream: boolean, maxTokens: number): string {
  const messages = [{ role: 'user', content: 'May I pass?' }]
  if (surface === 'messages')
    return JSON.stringify({ model: MODEL.messages, max_tokens: maxTokens, stream, messages })
  // The body has the option that the gateway would inject, so that the reply passes unchanged.
  const more = stream ? { stream_options: { include_usage: true } } : {}
  return JSON.stringify({ model: MODEL.chat, max_completion_tokens: maxTokens, stream, messages, ...more })
}

/** The bytes that a served client must have received. */
export function expectedBytes({
  surface = 'messages',
  stream = false,
  name,
  tokens = 200,
}: ClientCall): string {
  return bytesOf(surface, stream, name, tokens)
}
