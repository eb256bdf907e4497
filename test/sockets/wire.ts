import type net from 'node:net'
import { nextTurn, withDeadline } from '../support/deadline.ts'

const HEAD_END = '\r\n\r\n'

/** One end of a connection that began with HTTP: its head, and every byte after it. */
export class Wire {
  readonly socket: net.Socket
  /** Resolves when the other side has sent FIN or disconnected. */
  readonly ended: Promise<'fin' | 'gone'>
  #bytes = Buffer.alloc(0)
  #isOver = false
  readonly #waiting = new Set<() => void>()
  readonly #plain: net.Socket

  /** `plain` is the TCP socket under an encrypted one. */
  constructor(socket: net.Socket, plain = socket) {
    this.socket = socket
    this.#plain = plain
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    const ended = new Promise<'fin' | 'gone'>((resolve) => {
      socket.on('end', () => resolve('fin'))
      socket.on('close', () => resolve('gone'))
    })
    this.ended = withDeadline(ended, () => `still open after ${this.#seen()}`)
    this.ended.then(
      () => {
        this.#isOver = true
        this.#wake()
      },
      () => {},
    )
  }

  get hasHead(): boolean {
    return this.#bytes.includes(HEAD_END)
  }

  get received(): Buffer {
    const at = this.#bytes.indexOf(HEAD_END)
    return at === -1 ? Buffer.alloc(0) : this.#bytes.subarray(at + HEAD_END.length)
  }

  /** The lines of the head, starting with the request line or the status line. */
  async head(): Promise<string[]> {
    await this.until(() => this.hasHead, 'a head')
    return this.#bytes.subarray(0, this.#bytes.indexOf(HEAD_END)).toString('latin1').split('\r\n')
  }

  async receivedBytes(count: number): Promise<Buffer> {
    await this.until(() => this.received.length >= count, `${count} bytes`)
    return this.received
  }

  /** Checks the condition at every chunk. Fails if the connection ends first. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    while (!isSo()) {
      if (this.#isOver) throw new Error(`the connection ended before ${what}: ${this.#seen()}`)
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await withDeadline(promise, () => `${what} did not come: ${this.#seen()}`)
    }
  }

  /** Sends each piece as a separate packet. */
  async send(...pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      await new Promise<void>((resolve) => this.socket.write(piece, () => resolve()))
      if (pieces.length > 1) await nextTurn()
    }
  }

  reset(): void {
    this.#plain.resetAndDestroy()
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }

  #seen(): string {
    const { length } = this.#bytes
    return `${length} bytes beginning ${JSON.stringify(this.#bytes.subarray(0, 400).toString('latin1'))}`
  }
}
