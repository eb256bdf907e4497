import type { JsonObject } from './json.ts'
import type { Pace } from './pace.ts'

export type Header = readonly [name: string, value: string]

/** One event of a stream, or one piece of a sound. `tokens` paces the frame; a delta carries output of the model. */
export interface Frame {
  readonly bytes: Buffer
  readonly tokens: number
  readonly isDelta: boolean
}

/** An event of a response, for a stream or a socket. */
export interface TurnEvent {
  readonly event: JsonObject & { readonly type: string }
  readonly tokens: number
  readonly isDelta: boolean
}

/** An event: with its name on Messages, Responses and images, without on Chat and audio. */
export function eventFrame(name: string | null, data: object, tokens = 0, isDelta = false): Frame {
  const head = name === null ? '' : `event: ${name}\n`
  return { bytes: Buffer.from(`${head}data: ${JSON.stringify(data)}\n\n`), tokens, isDelta }
}

export const doneFrame: Frame = { bytes: Buffer.from('data: [DONE]\n\n'), tokens: 0, isDelta: false }

/** A reply; one that is no stream has a single frame. `tokens` says how long the model took to write the whole. */
export interface Reply {
  readonly status: number
  readonly isStream: boolean
  readonly headers: readonly Header[]
  readonly frames: Iterable<Frame>
  readonly pace: Pace | null
  readonly tokens: number
  /** The event that ends a stream which fails after `sent` events. */
  readonly errorFrame: (sent: number) => Frame
}

export interface Timing {
  readonly pace?: Pace
  readonly tokens?: number
}

export function jsonReply(body: object, timing: Timing = {}, status = 200, headers: Header[] = []): Reply {
  return bytesReply('application/json', Buffer.from(JSON.stringify(body)), timing, status, headers)
}

export function bytesReply(
  contentType: string,
  bytes: Buffer,
  { pace, tokens = 0 }: Timing = {},
  status = 200,
  headers: Header[] = [],
): Reply {
  const frame = { bytes, tokens: 0, isDelta: false }
  return {
    status,
    isStream: false,
    headers: [['content-type', contentType], ['content-length', String(bytes.length)], ...headers],
    frames: [frame],
    pace: pace ?? null,
    tokens,
    errorFrame: () => frame,
  }
}

export function streamReply(
  frames: Iterable<Frame>,
  errorFrame: (sent: number) => Frame,
  pace: Pace,
  contentType = 'text/event-stream; charset=utf-8',
): Reply {
  const headers: Header[] = [
    ['content-type', contentType],
    ['cache-control', 'no-cache'],
  ]
  return { status: 200, isStream: true, headers, frames, pace, tokens: 0, errorFrame }
}
