import { connect, type Socket } from 'node:net'
import { ResponseReader } from './response-reader.ts'

export interface CallerEvents {
  /** A response is complete, or its connection broke before that; the status is null then. */
  ended(caller: Caller, status: number | null): void
  body?(caller: Caller, piece: Buffer): void
}

/** One connection that sends a request and waits for its answer. Opened again when it breaks. */
export class Caller {
  readonly #host: string
  readonly #port: number
  readonly #events: CallerEvents
  readonly #reader: ResponseReader
  #socket: Socket | null = null
  #waiting = false
  /** When the request under way was sent; set by the code that sends it. */
  sentNs = 0

  constructor(url: string, events: CallerEvents) {
    const { hostname, port } = new URL(url)
    this.#host = hostname
    this.#port = Number(port)
    this.#events = events
    this.#reader = new ResponseReader(
      events.body === undefined ? null : (piece) => events.body?.(this, piece),
    )
  }

  ask(request: Buffer): void {
    const socket = this.#socket ?? this.#open()
    this.#reader.reset()
    this.#waiting = true
    socket.write(request)
  }

  close(): void {
    this.#waiting = false
    this.#socket?.destroy()
  }

  #open(): Socket {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
    this.#socket = socket
    socket.on('data', (chunk) => {
      if (!this.#reader.read(chunk)) return
      if (!this.#reader.keepAlive) {
        this.#socket = null
        socket.destroy()
      }
      this.#waiting = false
      this.#events.ended(this, this.#reader.status)
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#socket = null
      if (!this.#waiting) return
      this.#waiting = false
      this.#events.ended(this, null)
    })
    return socket
  }
}

/** A whole request as it goes over the wire. */
export function requestBytes(
  url: string,
  path: string,
  headers: readonly (readonly [name: string, value: string])[],
  body: string | null,
): Buffer {
  const lines = [
    `${body === null ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    `host: ${new URL(url).host}`,
    'user-agent: tollgate-bench',
    'accept: application/json',
    ...(body === null
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)
}
