import { connect, type Socket } from 'node:net'
import { FrameSplitter } from './frame-splitter.ts'

const HEAD_END = '\r\n\r\n'

export interface SocketEvents {
  /** Upstream's 101 has come. */
  opened(caller: SocketCaller): void
  message(caller: SocketCaller, payload: Buffer): void
  /** The connection is gone, or the handshake was refused. */
  closed(caller: SocketCaller): void
}

/** A WebSocket as a client has it. */
export class SocketCaller {
  readonly #socket: Socket
  readonly #events: SocketEvents
  readonly #frames: FrameSplitter
  #head = ''
  #isOpen = false

  constructor(url: string, handshake: string, events: SocketEvents) {
    const { hostname, port } = new URL(url)
    this.#events = events
    this.#frames = new FrameSplitter((_, payload) => events.message(this, payload))
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true })
    this.#socket.write(handshake, 'latin1')
    this.#socket.on('data', (chunk) => {
      if (this.#isOpen) this.#frames.read(chunk)
      else this.#readHead(chunk)
    })
    this.#socket.on('error', () => this.#socket.destroy())
    this.#socket.on('close', () => events.closed(this))
  }

  send(message: Buffer): void {
    this.#socket.write(message)
  }

  close(): void {
    this.#socket.destroy()
  }

  /** The head of the handshake's answer: no byte follows it before the client has sent a message. */
  #readHead(chunk: Buffer): void {
    this.#head += chunk.toString('latin1')
    if (!this.#head.endsWith(HEAD_END)) return
    this.#isOpen = this.#head.startsWith('HTTP/1.1 101 ')
    if (this.#isOpen) this.#events.opened(this)
    else this.#socket.destroy()
  }
}
