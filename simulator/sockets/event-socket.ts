import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'
import type { Simulation } from '../answer-request.ts'
import { type Behaviours, parseBehaviours } from '../behaviours.ts'
import { deterministicIdentity, fingerprintRequest, type Identity, uniqueIdentity } from '../identity.ts'
import { asText, isObject, type JsonObject, parseJson } from '../json.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { createSlicer } from '../slicer.ts'

/** The facts of the handshake that the socket goes by. */
export interface Handshake {
  readonly simulation: Simulation
  readonly nth: number
  readonly target: string
  readonly query: URLSearchParams
  readonly behaviours: Behaviours
  readonly behaviourHeader: string
}

export interface ClientEvent {
  readonly type: string
  readonly json: JsonObject
  readonly bytes: Buffer
  /** The position of the message among those of the socket, from 0. */
  readonly position: number
}

/** Beyond this many bytes that the client has not read, the client has to read before more is sent. */
const unreadBytesMax = 1024 * 1024

/** The socket of one client: JSON events in both directions. */
export class EventSocket {
  readonly handshake: Handshake
  readonly #ws: WebSocket
  readonly #raw: Duplex
  readonly #left = new AbortController()
  #received = 0
  #flushed: Promise<void> = Promise.resolve()

  constructor(ws: WebSocket, raw: Duplex, handshake: Handshake) {
    this.#ws = ws
    this.#raw = raw
    this.handshake = handshake
    const { simulation, nth, target } = handshake
    ws.on('close', (code, reason) => {
      this.#left.abort()
      simulation.onSocket?.({ kind: 'close', socket: nth, path: target, code, reason: reason.toString() })
    })
    // A faulty frame closes the socket, which is all there is to do about the error.
    ws.on('error', () => undefined)
  }

  /** Aborted when the client has left or was cut off. */
  get signal(): AbortSignal {
    return this.#left.signal
  }

  /** Gives each event of the client to `take`, and the refusal that `take` throws to `refuse`, which tells the client. */
  listen(take: (event: ClientEvent) => void, refuse: (refusal: Refusal, event: JsonObject) => void): void {
    const { simulation, nth, target } = this.handshake
    this.#ws.on('message', (data: RawData, isBinary: boolean) => {
      const bytes = Buffer.isBuffer(data)
        ? data
        : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)])
      simulation.onSocket?.({ kind: 'message', socket: nth, path: target, data: bytes, isBinary })
      const position = this.#received
      this.#received += 1
      const json = parseJson(bytes.toString('utf8'))
      try {
        if (!isObject(json))
          throw new Refusal(400, 'Could not parse the message as a JSON object.', { code: 'invalid_json' })
        take({ type: asText(json['type']), json, bytes, position })
      } catch (error) {
        refuse(asRefusal(error), isObject(json) ? json : {})
      }
    })
  }

  send(event: JsonObject, chunks?: Behaviours['chunks']): Promise<void> {
    return this.sendText(JSON.stringify(event), chunks)
  }

  /** Resolves when there is room for more. `chunks` makes a message of fragments that respect no boundary. */
  async sendText(text: string, chunks?: Behaviours['chunks']): Promise<void> {
    if (this.#ws.readyState !== this.#ws.OPEN) return
    const bytes = Buffer.from(text)
    const slicer = chunks === undefined ? undefined : createSlicer(chunks)
    const pieces = slicer === undefined ? [bytes] : [...slicer.push(bytes), ...slicer.finish()]
    this.#flushed = new Promise((resolve) => {
      for (const [index, piece] of pieces.entries()) {
        const fin = index === pieces.length - 1
        this.#ws.send(piece, { binary: false, fin }, fin ? () => resolve() : undefined)
      }
    })
    if (this.#ws.bufferedAmount < unreadBytesMax) return
    // No more is read from a client that does not read either: each of its messages may have an answer.
    this.#ws.pause()
    await this.#flushed
    this.#ws.resume()
  }

  close(code: number, reason: string): void {
    this.#ws.close(code, reason)
  }

  /** Writes a frame up to the first `bytesMax` bytes of its message, and breaks the connection there. */
  async cutWithin(text: string, bytesMax: number): Promise<void> {
    const bytes = Buffer.from(text)
    const head = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(BigInt(bytes.length), 2)
    await this.flush()
    this.#raw.write(Buffer.concat([head, bytes.subarray(0, bytesMax)]), () => this.cut())
  }

  cut(): void {
    this.#left.abort()
    this.#ws.terminate()
  }

  /** Resolves when the messages sent before have left: after a send, a message may still be under compression. */
  flush(): Promise<void> {
    return this.#flushed
  }

  /** The behaviours of the turn that a message begins: the handshake's, and over them those of the message's metadata. */
  behavioursOf(metadata: unknown): Behaviours {
    const { behaviours } = this.handshake
    const header = isObject(metadata) ? asText(metadata['x-simulator']) : ''
    if (header === '') return behaviours
    const parsed = parseBehaviours(header)
    if (!parsed.ok) throw new Refusal(400, parsed.problem, { param: 'metadata' })
    return { ...behaviours, ...parsed.behaviours }
  }

  /** Ids of the objects that a message makes. In a deterministic simulator the same conversation gets the same ids. */
  identityOf(position: number, body: Uint8Array): Identity {
    const { simulation, target, behaviourHeader } = this.handshake
    if (!simulation.isDeterministic) return uniqueIdentity()
    return deterministicIdentity(
      fingerprintRequest({
        method: 'GET',
        target,
        behaviours: behaviourHeader,
        contentType: '',
        body: Buffer.concat([Buffer.from(`${position}\n`), body]),
      }),
    )
  }
}

export function unknownType(type: string, known: readonly string[]): Refusal {
  return new Refusal(
    400,
    `Invalid value: '${type}'. Supported values are: ${known.map((name) => `'${name}'`).join(', ')}.`,
    {
      code: 'invalid_value',
      param: 'type',
    },
  )
}
