import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RawData, WebSocket } from 'ws'
import { identify, type Simulation } from '../answer-request.ts'
import { type Behaviours, parseBehaviours } from '../behaviours.ts'
import type { Identity } from '../identity.ts'
import { asText, isObject, type JsonObject, parseJson } from '../json.ts'
import { type Pace, tokensMs, wait } from '../pace.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import type { TurnEvent } from '../reply.ts'

export interface Handshake {
  readonly simulation: Simulation
  readonly req: IncomingMessage
  /** The position among all requests. */
  readonly nth: number
  readonly behaviours: Behaviours
}

export interface ClientEvent {
  readonly type: string
  readonly json: JsonObject
  /** The position of the message among those of the socket, from 0. */
  readonly position: number
}

export interface Turn {
  readonly events: Iterable<TurnEvent>
  readonly behaviours: Behaviours
  readonly pace: Pace
  /** Aborted when the turn is cancelled: it stops waiting, and its events lead to the end. */
  readonly interrupt: AbortSignal
  /** The event that ends a turn which fails. */
  readonly errorEvent: JsonObject
  /** Adds members such as an event id to each event. */
  readonly stamp: (event: JsonObject) => JsonObject
}

/** Beyond this many unread bytes, the next event waits for the client. */
const unreadBytesMax = 1024 * 1024

/** The socket of one client: JSON events in both directions. */
export class EventSocket {
  readonly handshake: Handshake
  readonly #ws: WebSocket
  readonly #left = new AbortController()
  #received = 0
  #flushed: Promise<void> = Promise.resolve()

  constructor(ws: WebSocket, handshake: Handshake) {
    this.#ws = ws
    this.handshake = handshake
    const { simulation, nth, req } = handshake
    const path = req.url ?? '/'
    ws.on('close', (code, reason) => {
      this.#left.abort()
      simulation.onSocket?.({ kind: 'close', socket: nth, path, code, reason: reason.toString() })
    })
    // A faulty frame closes the socket by itself.
    ws.on('error', () => undefined)
  }

  /** Aborted when the client has left. */
  get signal(): AbortSignal {
    return this.#left.signal
  }

  /** Passes each event of the client to `take`, and a refusal that `take` throws to `refuse`. */
  listen(take: (event: ClientEvent) => void, refuse: (refusal: Refusal, event: JsonObject) => void): void {
    const { simulation, nth, req } = this.handshake
    const path = req.url ?? '/'
    this.#ws.on('message', (raw: RawData, isBinary: boolean) => {
      const data = Buffer.isBuffer(raw) ? raw : Buffer.concat(Array.isArray(raw) ? raw : [Buffer.from(raw)])
      simulation.onSocket?.({ kind: 'message', socket: nth, path, data, isBinary })
      const position = this.#received
      this.#received += 1
      const json = parseJson(data.toString('utf8'))
      try {
        if (!isObject(json)) throw new Refusal(400, 'Could not parse the message as a JSON object.')
        take({ type: asText(json['type']), json, position })
      } catch (error) {
        refuse(asRefusal(error), isObject(json) ? json : {})
      }
    })
  }

  /** Resolves when the client has room for more. */
  async send(event: JsonObject): Promise<void> {
    if (this.#ws.readyState !== this.#ws.OPEN) return
    this.#flushed = new Promise((resolve) => this.#ws.send(JSON.stringify(event), () => resolve()))
    if (this.#ws.bufferedAmount >= unreadBytesMax) await this.#flushed
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason)
  }

  /** Writes one turn at its pace, with the faults that were asked for. */
  async writeTurn(turn: Turn): Promise<void> {
    const { cut, dripMs = 0, close, errorEvent, stall } = turn.behaviours
    const pace = this.handshake.simulation.mode === 'realistic' ? turn.pace : null
    const hurried = AbortSignal.any([this.signal, turn.interrupt])
    if (pace !== null) await wait(pace.firstByteMs, hurried)
    let index = 0
    let deltas = 0
    for (const { event, tokens, isDelta } of turn.events) {
      if (errorEvent !== undefined && isDelta && deltas >= errorEvent) {
        return await this.send(turn.stamp(turn.errorEvent))
      }
      if (cut?.count === index) break
      if (close?.count === index)
        return this.close(close.code, 'The simulator was asked to close this socket.')
      if (stall === index) await aborted(hurried)
      if (pace !== null) await wait(tokensMs(pace, tokens), hurried)
      if (index > 0 && dripMs > 0) await wait(dripMs, hurried)
      else await nextTurn()
      if (this.signal.aborted) return
      await this.send(turn.stamp(event))
      index += 1
      if (isDelta) deltas += 1
    }
    if (cut === undefined) return
    await this.#flushed
    this.#left.abort()
    this.#ws.terminate()
  }

  /** The behaviours of the handshake, overridden by those of a message's metadata. */
  behavioursOf(metadata: unknown): Behaviours {
    const header = isObject(metadata) ? asText(metadata['x-simulator']) : ''
    const { behaviours, problem } = parseBehaviours(header)
    if (problem !== undefined) throw new Refusal(400, problem, { param: 'metadata' })
    return { ...this.handshake.behaviours, ...behaviours }
  }

  /** Ids of the objects that a message creates. In a deterministic simulator the same conversation gets the same ids. */
  identityOf(position: number, json: JsonObject): Identity {
    const { simulation, req } = this.handshake
    return identify(simulation, req, Buffer.from(`${position}\n${JSON.stringify(json)}`))
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
