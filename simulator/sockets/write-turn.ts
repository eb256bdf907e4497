import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Behaviours, Cut } from '../behaviours.ts'
import type { JsonObject } from '../json.ts'
import { type Pace, tokensMs, wait } from '../pace.ts'
import type { EventSocket } from './event-socket.ts'

export interface TurnEvent {
  readonly event: JsonObject
  readonly tokens: number
  readonly isDelta: boolean
}

export function plainEvent(type: string, fields: JsonObject): TurnEvent {
  return { event: { type, ...fields }, tokens: 0, isDelta: false }
}

export function deltaEvent(type: string, fields: JsonObject, tokens: number): TurnEvent {
  return { event: { type, ...fields }, tokens, isDelta: true }
}

export interface Turn {
  readonly events: Iterable<TurnEvent>
  readonly behaviours: Behaviours
  readonly pace: Pace
  /** Aborted when the turn is to end early: the turn waits for nothing any more, and its events lead to the end. */
  readonly interrupt: AbortSignal
  /** The event that ends a turn which fails. */
  readonly errorEvent: JsonObject
  /** Adds to an event, when it leaves, the members that tell its place among the events of the socket. */
  readonly stamp: (event: JsonObject) => JsonObject
}

/** `failed` is a turn that ended with an error event, `gone` is a turn whose socket was lost or closed. */
export type TurnOutcome = 'complete' | 'failed' | 'gone'

/** `cut=mid-event` breaks off half way through this event, counted from 0. */
const midEventIndex = 2
const garbage = '{"type":"response.'

/** Writes one turn at its pace, with the faults that were asked for. */
export async function writeTurn(socket: EventSocket, turn: Turn): Promise<TurnOutcome> {
  const { behaviours } = turn
  const { cut, dripMs, chunks, close } = behaviours
  const pace = socket.handshake.simulation.mode === 'realistic' ? turn.pace : null
  const hurried = AbortSignal.any([socket.signal, turn.interrupt])
  if (pace !== null) await wait(pace.firstByteMs, hurried)

  let index = 0
  let deltas = 0
  let bytesSent = 0
  for (const { event, tokens, isDelta } of turn.events) {
    if (behaviours.errorEvent !== undefined && isDelta && deltas >= behaviours.errorEvent) {
      await socket.send(turn.stamp(turn.errorEvent), chunks)
      return 'failed'
    }
    if (cut?.kind === 'event' && cut.count === index) return await breakOff(socket)
    if (close?.count === index) {
      socket.close(close.code, 'The simulator was asked to close this socket.')
      return 'gone'
    }
    if (behaviours.garbage === index) await socket.sendText(garbage)
    if (behaviours.stall === index) await aborted(hurried)
    if (pace !== null) await wait(tokensMs(pace, tokens), hurried)
    if (index > 0 && dripMs !== undefined && dripMs > 0) await wait(dripMs, hurried)
    else await nextTurn()
    if (socket.signal.aborted) return 'gone'

    const text = JSON.stringify(turn.stamp(event))
    const length = Buffer.byteLength(text)
    const room = cut === undefined ? length : roomFor(cut, index, length, bytesSent)
    if (room < length) {
      await socket.cutWithin(text, room)
      return 'gone'
    }
    await socket.sendText(text, chunks)
    bytesSent += length
    index += 1
    if (isDelta) deltas += 1
  }
  // A turn that is shorter than the place of the cut still breaks: a cut was asked for, not a clean end.
  return cut === undefined ? 'complete' : await breakOff(socket)
}

async function breakOff(socket: EventSocket): Promise<'gone'> {
  await socket.flush()
  socket.cut()
  return 'gone'
}

/** How much of this event leaves before the cut. */
function roomFor(cut: Cut, index: number, length: number, bytesSent: number): number {
  if (cut.kind === 'mid-event') return index === midEventIndex ? length >> 1 : length
  return cut.kind === 'byte' ? Math.min(length, cut.count - bytesSent) : length
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
