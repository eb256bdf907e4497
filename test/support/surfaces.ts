import type { SurfaceName } from './permitted-differences.ts'

export const providerKeys = {
  messages: 'sk-ant-provider-key-of-the-operator',
  chat: 'sk-provider-key-of-the-operator',
} as const

export type Surface = {
  name: SurfaceName
  /** An endpoint whose body the gateway reads before it admits the call. */
  readEndpoint: string
  /** An endpoint whose body the gateway need not read. */
  streamedEndpoint: string
  /** The header lines that select this surface, with the client's key. */
  lines: (key: string) => string[]
  /** The header line that upstream must see instead of the client's key. */
  credentialLine: string
  /** A body that asks for a stream and leaves nothing for the gateway to inject. */
  streamingBody: string
  jsonBody: string
}

const messages: Surface = {
  name: 'messages',
  readEndpoint: '/v1/messages',
  streamedEndpoint: '/v1/files',
  lines: (key) => ['anthropic-version: 2023-06-01', `x-api-key: ${key}`],
  credentialLine: `x-api-key: ${providerKeys.messages}`,
  streamingBody:
    '{"model":"claude-sonnet-4-5","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"hi"}]}',
  jsonBody: '{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[{"role":"user","content":"h\\u00e9"}]}',
}

const chat: Surface = {
  name: 'chat',
  readEndpoint: '/v1/chat/completions',
  streamedEndpoint: '/v1/files',
  lines: (key) => [`Authorization: Bearer ${key}`],
  credentialLine: `Authorization: Bearer ${providerKeys.chat}`,
  streamingBody:
    '{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}',
  jsonBody: '{"model":"gpt-5","messages":[{"role":"user","content":"h\\u00e9"}]}',
}

export const surfaces: readonly Surface[] = [messages, chat]

export const surfaceOf = (name: SurfaceName): Surface => (name === 'messages' ? messages : chat)
