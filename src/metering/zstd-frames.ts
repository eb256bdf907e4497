const MAGIC = 0xfd2fb528
/** The lowest of the sixteen magic numbers of frames that decoders skip. */
const SKIPPABLE = 0x184d2a50

/** Sizes of the two optional fields of a frame's header, by their flags. */
const DICTIONARY_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]

type FrameField = 'magic' | 'skip_size' | 'descriptor' | 'block' | 'last' | 'body'

const PART_BYTES: Readonly<Record<FrameField, number>> = {
  magic: 4,
  skip_size: 4,
  descriptor: 1,
  block: 3,
  last: 0,
  body: 0,
}

/**
 * Splits a zstd body at the ends of its frames (RFC 8878). Node stops at the end of a frame and drops the rest of the
 * chunk, but reads a frame that begins with a chunk.
 */
export class ZstdFrames {
  #part: FrameField = 'magic'
  /** The bytes of the current field so far, as a little-endian number. */
  #field = 0
  #fieldBytes = 0
  /** Bytes to pass over before the next field, and the field that follows. */
  #skip = 0
  #hasChecksum = false

  #read(byte: number): void {
    // Behind bytes that are no frame, the decoder fails: nothing is left to split.
    if (this.#part === 'body') return
    this.#field += byte * 2 ** (8 * this.#fieldBytes)
    this.#fieldBytes++
    if (this.#fieldBytes < PART_BYTES[this.#part]) return
    const field = this.#field
    this.#field = 0
    this.#fieldBytes = 0
    this.#next(field)
  }

  #next(field: number): void {
    switch (this.#part) {
      case 'magic':
        if (field === MAGIC) this.#part = 'descriptor'
        else this.#part = field >= SKIPPABLE && field < SKIPPABLE + 16 ? 'skip_size' : 'body'
        return
      case 'skip_size':
        this.#end(field)
        return
      case 'descriptor':
        this.#readDescriptor(field)
        return
      case 'block': {
        const isRepeated = ((field >> 1) & 3) === 1
        this.#skip = isRepeated ? 1 : field >> 3
        if ((field & 1) === 1) this.#end(this.#skip + (this.#hasChecksum ? 4 : 0))
      }
    }
  }

  #readDescriptor(descriptor: number): void {
    const isSingle = (descriptor & 0x20) !== 0
    const contentSize = CONTENT_SIZE_BYTES[descriptor >> 6] ?? 0
    this.#hasChecksum = (descriptor & 4) !== 0
    this.#skip = (isSingle ? 0 : 1) + (DICTIONARY_BYTES[descriptor & 3] ?? 0)
    this.#skip += isSingle && contentSize === 0 ? 1 : contentSize
    this.#part = 'block'
  }

  #end(bytesLeft: number): void {
    this.#skip = bytesLeft
    this.#part = 'last'
  }

  /** The pieces of the chunk, none of which crosses the end of a frame. */
  *split(chunk: Buffer): Generator<Buffer> {
    let from = 0
    for (let at = 0; at < chunk.length; ) {
      const passed = Math.min(this.#skip, chunk.length - at)
      this.#skip -= passed
      at += passed
      if (this.#skip === 0 && at < chunk.length && this.#part !== 'last') this.#read(chunk[at++] as number)
      if (this.#skip > 0 || this.#part !== 'last') continue
      this.#part = 'magic'
      yield chunk.subarray(from, at)
      from = at
    }
    if (from < chunk.length) yield chunk.subarray(from)
  }
}
