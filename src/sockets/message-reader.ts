import { isUtf8 } from 'node:buffer'
import { ChunkList, copyIfBorrowed } from '../kernel/memory.ts'
import { type FramePart, OPCODE } from './frame-reader.ts'
import { type Deflate, Inflater } from './inflater.ts'

export type { Deflate }

/** The content of a message, or why it cannot be read. The payload may be kept, whatever becomes of the chunks it came in. */
export type Message =
  | { readonly kind: 'message'; readonly opcode: 1 | 2; readonly payload: Buffer }
  | { readonly kind: 'unreadable'; readonly why: 'too_large' | 'not_inflatable' | 'not_utf8' }

/** The compression that both ends have agreed on, for the messages that each of them sends. */
export interface Extensions {
  readonly client: Deflate
  readonly server: Deflate
}

/** Puts the messages of one direction together from the parts of their frames. */
export class MessageReader {
  readonly #inflater: Inflater | null
  readonly #messageBytesMax: number
  /** The pieces of a message that is not compressed and not complete. */
  #pieces: ChunkList | null = null
  #bytes = 0
  /** The last message that is not delivered yet. Messages that follow must not overtake it. */
  #last: Promise<Message> | null = null
  #isDisposed = false

  constructor(options: { readonly inflate: Deflate | null; readonly messageBytesMax: number }) {
    this.#messageBytesMax = options.messageBytesMax
    this.#inflater = options.inflate && new Inflater(options.inflate, options.messageBytesMax)
  }

  /** Bytes that are kept of messages that are not complete or not inflated yet. */
  get keptBytes(): number {
    const bytes = this.#pieces === null ? 0 : this.#bytes
    return bytes + (this.#inflater?.keptBytes ?? 0)
  }

  /** Back-pressure where many bytes wait to be inflated: the peer should wait until this settles. Null where it need not. */
  caughtUp(): Promise<void> | null {
    return this.#inflater?.caughtUp() ?? null
  }

  /**
   * Takes data parts in order. Gives a message where the part ends one: a promise where the message has to be
   * inflated, or a message before it is being inflated; else null. A message that is too large is not kept, but where
   * the messages after it may refer to it, it is inflated all the same.
   */
  push(part: FramePart): Message | Promise<Message> | null {
    if (part.kind === 'control' || this.#isDisposed) return null
    if (part.compressed && this.#inflater !== null) return this.#pushCompressed(part, this.#inflater)
    const message = part.compressed ? unknownCompression(part) : this.#pushPlain(part)
    if (message === null || this.#last === null) return message
    return this.#wait(this.#last.then(() => message))
  }

  /** Gives the memory back. Messages that are still being read become `not_inflatable`. */
  dispose(): void {
    this.#isDisposed = true
    this.#inflater?.dispose()
    this.#pieces?.clear()
    this.#pieces = null
  }

  #pushCompressed(part: FramePart, inflater: Inflater): Promise<Message> | null {
    const inflated = inflater.push(part.payload, part.endsMessage)
    if (inflated === null) return null
    return this.#wait(inflated.then((result) => messageOf(part.opcode, result)))
  }

  #pushPlain(part: FramePart): Message | null {
    this.#bytes += part.payload.length
    const isTooLarge = this.#bytes > this.#messageBytesMax
    if (isTooLarge) this.#dropPieces()
    else if (part.payload.length > 0 && (this.#pieces !== null || !part.endsMessage)) {
      this.#pieces ??= new ChunkList()
      this.#pieces.append(part.payload)
    }
    if (!part.endsMessage) return null
    const payload = this.#pieces?.joined() ?? copyIfBorrowed(part.payload)
    this.#dropPieces()
    this.#bytes = 0
    return messageOf(part.opcode, isTooLarge ? 'too_large' : payload)
  }

  #dropPieces(): void {
    this.#pieces?.clear()
    this.#pieces = null
  }

  #wait(message: Promise<Message>): Promise<Message> {
    this.#last = message
    // The message is forgotten one microtask after it was awaited, or the next message, which is there at once, would
    // overtake it.
    const forget = (): void => {
      if (this.#last === message) this.#last = null
    }
    void message.then(() => {}).then(forget)
    return message
  }
}

function unknownCompression(part: FramePart): Message | null {
  return part.endsMessage ? { kind: 'unreadable', why: 'not_inflatable' } : null
}

/** A message that is whole, and not compressed any more. */
export function messageOf(opcode: number, payload: Buffer | 'too_large' | 'not_inflatable'): Message {
  if (typeof payload === 'string') return { kind: 'unreadable', why: payload }
  if (opcode !== OPCODE.text) return { kind: 'message', opcode: OPCODE.binary, payload }
  return isUtf8(payload)
    ? { kind: 'message', opcode: OPCODE.text, payload }
    : { kind: 'unreadable', why: 'not_utf8' }
}

const TAKEOVER = /^(client|server)_no_context_takeover$/
const WINDOW_BITS = /^(client|server)_max_window_bits=("?)([89]|1[0-5])\2$/

/**
 * The meaning of upstream's `Sec-WebSocket-Extensions`: null is no extension, 'unknown' is anything but one
 * permessage-deflate as RFC 7692 has it, since the gateway could read that otherwise than the two ends do.
 */
export function readExtensions(value: string | null): Extensions | null | 'unknown' {
  if (value === null) return null
  const [name, ...parameters] = value.replace(/^[ \t]+|[ \t]+$/g, '').split(/[ \t]*;[ \t]*/)
  if (name !== 'permessage-deflate') return 'unknown'
  const contextTakeover = { client: true, server: true }
  const windowBits = { client: 15, server: 15 }
  const seen = new Set<string>()
  for (const parameter of parameters) {
    const takeover = TAKEOVER.exec(parameter)
    const bits = WINDOW_BITS.exec(parameter)
    const side = (takeover ?? bits)?.[1] as 'client' | 'server' | undefined
    const key = parameter.split('=', 1)[0] ?? ''
    if (side === undefined || seen.has(key)) return 'unknown'
    seen.add(key)
    if (bits === null) contextTakeover[side] = false
    else windowBits[side] = Number(bits[3])
  }
  return {
    client: { contextTakeover: contextTakeover.client, windowBits: windowBits.client },
    server: { contextTakeover: contextTakeover.server, windowBits: windowBits.server },
  }
}
