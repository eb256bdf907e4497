import { isUtf8 } from 'node:buffer'
import { ChunkList } from '../kernel/memory.ts'
import { type FramePart, OPCODE } from './frame-reader.ts'

/** The content of a message, or why it cannot be read. The payload may be kept, whatever becomes of the chunks it came in. */
export type Message =
  | { readonly kind: 'message'; readonly payload: Buffer }
  | { readonly kind: 'unreadable'; readonly why: 'too_large' | 'not_utf8' }

export class MessageReader {
  readonly #messageBytesMax: number
  #pieces: ChunkList | null = null
  #bytes = 0

  constructor(messageBytesMax: number) {
    this.#messageBytesMax = messageBytesMax
  }

  /** Takes data parts in order. Returns a message if the part ends one. A message that is too large is not kept. */
  push(part: FramePart): Message | null {
    if (part.kind === 'control') return null
    this.#bytes += part.payload.length
    const isTooLarge = this.#bytes > this.#messageBytesMax
    if (isTooLarge) this.clear()
    else if (part.payload.length > 0 && (this.#pieces !== null || !part.endsMessage)) {
      this.#pieces ??= new ChunkList()
      this.#pieces.append(part.payload)
    }
    if (!part.endsMessage) return null
    const payload = this.#pieces?.joined() ?? part.payload
    this.clear()
    this.#bytes = 0
    return isTooLarge ? { kind: 'unreadable', why: 'too_large' } : messageOf(part.opcode, payload)
  }

  clear(): void {
    this.#pieces?.clear()
    this.#pieces = null
  }
}

export function messageOf(opcode: number, payload: Buffer): Message {
  return opcode !== OPCODE.text || isUtf8(payload)
    ? { kind: 'message', payload }
    : { kind: 'unreadable', why: 'not_utf8' }
}
