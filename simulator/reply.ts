import type { Pace } from './pace.ts'
import type { Frame } from './sse.ts'

export type Header = readonly [name: string, value: string]

/** A reply that is complete before it is sent. `tokens` says how long the model took to write the reply. */
export interface BodyReply {
  readonly kind: 'body'
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: Buffer
  readonly pace: Pace | null
  readonly tokens: number
}

export interface EventsReply {
  readonly kind: 'events'
  readonly status: number
  readonly headers: readonly Header[]
  readonly frames: Iterable<Frame>
  readonly pace: Pace | null
  /** The event that ends a stream which fails after `sent` events. */
  readonly errorFrame: (sent: number) => Frame
}

export type Reply = BodyReply | EventsReply

export function jsonReply(
  status: number,
  body: unknown,
  options: { headers?: readonly Header[]; pace?: Pace; tokens?: number } = {},
): BodyReply {
  return {
    kind: 'body',
    status,
    headers: [['content-type', 'application/json'], ...(options.headers ?? [])],
    body: Buffer.from(JSON.stringify(body)),
    pace: options.pace ?? null,
    tokens: options.tokens ?? 0,
  }
}

/** A body that is no JSON. */
export function bytesReply(
  contentType: string,
  body: Buffer,
  headers: readonly Header[],
  options: { pace?: Pace; tokens?: number } = {},
): BodyReply {
  return {
    kind: 'body',
    status: 200,
    headers: [['content-type', contentType], ...headers],
    body,
    pace: options.pace ?? null,
    tokens: options.tokens ?? 0,
  }
}

export function eventsReply(
  frames: Iterable<Frame>,
  errorFrame: (sent: number) => Frame,
  pace: Pace,
  headers: readonly Header[],
  contentType = 'text/event-stream; charset=utf-8',
): EventsReply {
  return {
    kind: 'events',
    status: 200,
    headers: [['content-type', contentType], ['cache-control', 'no-cache'], ...headers],
    frames,
    pace,
    errorFrame,
  }
}
