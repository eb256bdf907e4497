import type { Socket } from 'node:net'
import { FrameSplitter } from './frame-splitter.ts'
import type { PacedStream, Pacer } from './pacer.ts'
import { eventsAsked, SWITCHED, type TurnText, turnText } from './socket-text.ts'

const TEXT_FRAME = 1

/** Accepts a WebSocket, and answers each message with the turn that it asks for. The returned splitter reads the bytes. */
export function serveTurns(socket: Socket, pacer: Pacer): FrameSplitter {
  socket.write(SWITCHED, 'latin1')
  return new FrameSplitter((opcode, message) => {
    if (opcode === TEXT_FRAME) pacer.add(new SentTurn(socket, eventsAsked(message)))
  })
}

const texts = new Map<number, TurnText>()

class SentTurn implements PacedStream {
  readonly #socket: Socket
  readonly #text: TurnText
  readonly #events: number
  #sent = 0

  constructor(socket: Socket, events: number) {
    this.#socket = socket
    this.#events = events
    this.#text = texts.get(events) ?? turnText(events)
    texts.set(events, this.#text)
    socket.write(this.#text.opening, 'latin1')
  }

  send(nowNs: number): boolean {
    const socket = this.#socket
    if (socket.destroyed) return false
    const event = this.#text.event(this.#sent, nowNs)
    this.#sent += 1
    const isLast = this.#sent >= this.#events
    socket.write(isLast ? event + this.#text.closing : event, 'latin1')
    return !isLast
  }
}
