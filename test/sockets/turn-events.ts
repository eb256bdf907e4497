import { opcodeOf, payloadOf, splitFrames } from './raw-bench.ts'
import type { Wire } from './wire.ts'
import { wireOf } from './wire-frames.ts'

/** The message that begins a turn that upstream does not store. */
export const createFrame = (more: object = {}) =>
  wireOf('client', {
    opcode: 1,
    payload: JSON.stringify({
      type: 'response.create',
      model: 'gpt-4o',
      input: 'Tell me about tollgates.',
      max_output_tokens: 500,
      store: false,
      ...more,
    }),
  })

export const eventFrame = (event: object) => wireOf('server', { opcode: 1, payload: JSON.stringify(event) })

const response = (id: string | null, more: object) => ({
  response: { id, object: 'response', model: 'gpt-4o', output: [], usage: null, ...more },
})

const inLane = (streamId?: string) => (streamId === undefined ? {} : { stream_id: streamId })

export const created = (id: string | null, streamId?: string) =>
  eventFrame({ type: 'response.created', ...response(id, { status: 'in_progress' }), ...inLane(streamId) })

export const delta = (text: string) =>
  eventFrame({
    type: 'response.output_text.delta',
    item_id: 'msg_1',
    output_index: 0,
    content_index: 0,
    delta: text,
  })

export const USAGE = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 }

export const ended = (
  id: string | null,
  status = 'completed',
  usage: object | null = USAGE,
  streamId?: string,
) => eventFrame({ type: `response.${status}`, ...response(id, { status, usage }), ...inLane(streamId) })

export const closeFrameOf = (code: number, from: 'client' | 'server' = 'server') =>
  wireOf(from, { opcode: 8, payload: Buffer.from([code >> 8, code & 0xff]) })

/** The code with which the other side closed; null without one, or while the socket is open. */
export function closeCodeOf({ received }: Wire): number | null {
  const close = splitFrames(received).find((frame) => opcodeOf(frame) === 8)
  return close === undefined || close.length < 4 ? null : payloadOf(close).readUInt16BE(0)
}

/** Resolves once this many messages have arrived. */
export const hasMessages = (wire: Wire, count: number) =>
  wire.until(
    () => splitFrames(wire.received).filter((frame) => opcodeOf(frame) < 8).length >= count,
    `${count} messages`,
  )
