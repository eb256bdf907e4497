import { Buffer } from 'node:buffer'
import type net from 'node:net'

const heldBytesMax = 1024 * 1024

/** Turns the pushes of a socket into pulls, and stops reading while too much is unread. */
export class Inbox {
  readonly #socket: net.Socket
  readonly #parts: Buffer[] = []
  #heldBytes = 0
  #over = false
  #wake: (() => void) | undefined

  constructor(socket: net.Socket, onBytes: (size: number) => void) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      onBytes(bytes.length)
      this.putBack(bytes, 'behind')
      if (this.#heldBytes > heldBytesMax) socket.pause()
    })
    const end = () => {
      this.#over = true
      this.#wake?.()
    }
    socket.on('end', end)
    socket.on('close', end)
  }

  /** The next bytes, or undefined after the peer has ended. */
  async take(): Promise<Buffer | undefined> {
    while (this.#parts.length === 0) {
      if (this.#over) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const bytes = this.#parts.shift() ?? Buffer.alloc(0)
    this.#heldBytes -= bytes.length
    if (this.#heldBytes <= heldBytesMax) this.#socket.resume()
    return bytes
  }

  putBack(bytes: Buffer, where: 'before' | 'behind' = 'before'): void {
    if (bytes.length === 0) return
    if (where === 'before') this.#parts.unshift(bytes)
    else this.#parts.push(bytes)
    this.#heldBytes += bytes.length
    this.#wake?.()
  }

  /** Leaves all further bytes in the kernel. */
  stopReading(): void {
    this.#over = true
    this.#socket.pause()
  }
}
