/** Reads one response off a connection: status, then the bytes of the body without their framing. */

const HEAD_END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)
const HEAD_BYTES_MAX = 64 * 1024
const CR = 13
const LF = 10

type Phase = 'head' | 'length' | 'chunk_size' | 'chunk_data' | 'chunk_end' | 'trailers' | 'done'

export class ResponseReader {
  readonly #onBody: ((piece: Buffer) => void) | null
  #phase: Phase = 'head'
  #pending: Buffer = NOTHING
  #left = 0
  #sizeText = ''
  #trailerLineChars = 0
  status = 0
  bodyBytes = 0
  keepAlive = true

  constructor(onBody: ((piece: Buffer) => void) | null) {
    this.#onBody = onBody
  }

  /** Makes the reader ready for the next response. */
  reset(): void {
    this.#phase = 'head'
    this.#pending = NOTHING
    this.status = 0
    this.bodyBytes = 0
    this.keepAlive = true
  }

  /** True when the response is complete. */
  read(chunk: Buffer): boolean {
    let at = 0
    let bytes = chunk
    if (this.#phase === 'head') {
      bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
      const end = bytes.indexOf(HEAD_END)
      if (end < 0) {
        if (bytes.length > HEAD_BYTES_MAX) throw new Error('a response head without an end')
        this.#pending = bytes
        return false
      }
      this.#pending = NOTHING
      this.#readHead(bytes.toString('latin1', 0, end))
      at = end + HEAD_END.length
    }
    while (at < bytes.length && this.#phase !== 'done') at = this.#readPiece(bytes, at)
    return this.#phase === 'done'
  }

  #readHead(head: string): void {
    this.status = Number(head.slice(9, 12))
    this.keepAlive = !/\r\nconnection: *close/i.test(head)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length !== undefined) {
      this.#left = Number(length)
      this.#phase = this.#left === 0 ? 'done' : 'length'
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#phase = 'chunk_size'
      this.#sizeText = ''
    } else {
      throw new Error(`a response without framing: ${head}`)
    }
  }

  #readPiece(bytes: Buffer, at: number): number {
    switch (this.#phase) {
      case 'length':
      case 'chunk_data': {
        const end = Math.min(bytes.length, at + this.#left)
        this.#left -= end - at
        this.bodyBytes += end - at
        this.#onBody?.(bytes.subarray(at, end))
        if (this.#left === 0) this.#phase = this.#phase === 'length' ? 'done' : 'chunk_end'
        return end
      }
      case 'chunk_size': {
        const end = bytes.indexOf(LF, at)
        if (end < 0) {
          this.#sizeText += bytes.toString('latin1', at)
          return bytes.length
        }
        this.#left = Number.parseInt(this.#sizeText + bytes.toString('latin1', at, end), 16)
        this.#sizeText = ''
        this.#trailerLineChars = 0
        this.#phase = this.#left === 0 ? 'trailers' : 'chunk_data'
        return end + 1
      }
      case 'chunk_end':
        if (bytes[at] === LF) this.#phase = 'chunk_size'
        return at + 1
      default: {
        // Trailers: lines up to an empty one.
        const byte = bytes[at]
        if (byte === LF) {
          if (this.#trailerLineChars === 0) this.#phase = 'done'
          this.#trailerLineChars = 0
        } else if (byte !== CR) this.#trailerLineChars += 1
        return at + 1
      }
    }
  }
}
