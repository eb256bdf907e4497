import type { Simulator } from '../../simulator/start-simulator.ts'

// Plain HTTP to the simulator: tests see the bytes on the wire, without an SDK.

export interface JsonAnswer {
  readonly status: number
  readonly headers: Headers
  readonly json: unknown
}

export interface WireEvent {
  readonly event: string | null
  readonly data: unknown
}

export interface Sent {
  readonly headers?: Record<string, string>
  readonly behaviour?: string
}

export const anthropicHeaders = { 'anthropic-version': '2026-10-21' }

export function post(simulator: Simulator, path: string, body: unknown, sent: Sent = {}): Promise<Response> {
  return fetch(`${simulator.messagesUrl}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(sent.behaviour === undefined ? {} : { 'x-simulator': sent.behaviour }),
      ...sent.headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

export async function postJson(
  simulator: Simulator,
  path: string,
  body: unknown,
  sent: Sent = {},
): Promise<JsonAnswer> {
  const response = await post(simulator, path, body, sent)
  return { status: response.status, headers: response.headers, json: await response.json() }
}

export async function postEvents(
  simulator: Simulator,
  path: string,
  body: unknown,
  sent: Sent = {},
): Promise<WireEvent[]> {
  const response = await post(simulator, path, body, sent)
  return parseEvents(await response.text())
}

export async function send(
  simulator: Simulator,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<JsonAnswer> {
  const response = await fetch(`${simulator.messagesUrl}${path}`, { method, headers })
  return { status: response.status, headers: response.headers, json: await response.json() }
}

export function parseEvents(text: string): WireEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const data = /^data: (.*)$/m.exec(block)?.[1] ?? ''
      return {
        event: /^event: (.*)$/m.exec(block)?.[1] ?? null,
        data: data === '[DONE]' ? data : JSON.parse(data),
      }
    })
}

export function rawPost(path: string, body: unknown, headers: readonly string[] = []): Buffer {
  const json = typeof body === 'string' ? body : JSON.stringify(body)
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: simulator',
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(json)}`,
    ...headers,
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${json}`)
}

export const messageBody = (more: object = {}): object => ({
  model: 'claude-sonnet-5-5',
  max_tokens: 1_000,
  messages: [{ role: 'user', content: 'Tell me about tollgates.' }],
  ...more,
})

export const chatBody = (more: object = {}): object => ({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: 'Tell me about tollgates.' }],
  ...more,
})
