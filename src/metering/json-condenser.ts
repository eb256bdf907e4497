import { BoundedCopy } from './bounded-copy.ts'
import {
  CONDENSE_LIMITS,
  type Condensed,
  type CondenseLimits,
  type CondenseRules,
  DEPTH_MAX,
  type NameSet,
  type TwoCopies,
} from './json-document.ts'
import { JsonString, NEAR_BYTES, nextStop, QUOTE, StringRuns } from './json-string.ts'

const BACKSLASH = 0x5c
const LETTER_U = 0x75
const NULL = Buffer.from('null')
/** None of the names that are looked for is so long, not even with every character escaped. */
const NAME_BYTES_MAX = 256

/**
 * Strings of more bytes than this are long: far too long for a name of anything, however it is escaped, and long
 * enough for it to pay that they are not parsed.
 */
const LONG_BYTES = 4096

/** What is due inside a string: a character, one to four hexadecimal digits, or what a backslash escapes. */
const CHARACTER = 0
const ESCAPED = 5

const PLAIN = 0
const COMMA = 1
const COLON = 2
const STRING = 3
const OBJECT = 4
const ARRAY = 5
const CLOSE = 6
const KINDS = new Uint8Array(256)
for (const [i, bytes] of [',', ':', '"', '{', '[', '}]'].entries()) {
  for (const byte of Buffer.from(bytes)) KINDS[byte] = COMMA + i
}

/**
 * Makes a small copy of a JSON text of any size that arrives in pieces: what does not matter and the ends of long
 * strings (images, audio, pages of prose) are left out as they come by; the rest is there to be parsed.
 *
 * It is no parser. A text that is not JSON comes out as one that is not, or loses its fault with a value that did not
 * matter. The result does not depend on how the text was cut, and no chunk is referred to after `write` returns.
 */
export class JsonCondenser {
  readonly #keep: NameSet
  readonly #drop: NameSet
  readonly #limits: CondenseLimits
  readonly #copy = new BoundedCopy()
  /** A bit for each open container: whether it is an object. So few bytes V8 keeps on its heap, which is cheap. */
  readonly #objects = new Uint8Array((DEPTH_MAX >> 3) + 1)
  #depth = 0
  #isInObject = false
  #names = 0
  #overflow = false
  #broken = false

  /** The copy of this chunk's bytes has come so far; nothing is copied while `#mute` or `#skipped` says so. */
  #from = 0
  /** In a string that was cut; and whether what comes next of it is escaped. */
  #mute = false
  #muteEscape = false
  /** Where in the copy the string at hand began; where the long ones begin and end, by turns. */
  #stringStart = 0
  #long: number[] = []
  /** The depth of the object of which a member is being left out, or 0. */
  #skipped = 0

  /** The member whose length is limited: its depth, and what to go back to when it gets too long. */
  #memberDepth = 0
  #memberStart = -1
  #memberNames = 0
  #memberTextRoom = 0

  #inString = false
  #due = CHARACTER
  #isName = false
  #nameIsDue = false
  /** Whether the member behind the last name matters; its beginning, where a chunk ended within it. */
  #matters = true
  #name = ''
  #nameHasEscape = false
  /** What may be copied of this string, what that was at first, and what may be copied of all that follow. */
  #room = 0
  #roomAtFirst = 0
  #textRoom = 0
  readonly #runs = new StringRuns()

  constructor(rules: CondenseRules, limits: Partial<CondenseLimits> | null = null) {
    this.#keep = rules.keep
    this.#drop = rules.drop
    this.#limits = limits === null ? CONDENSE_LIMITS : { ...CONDENSE_LIMITS, ...limits }
    this.#textRoom = this.#limits.textBytesMax
  }

  write(chunk: Buffer, from: number, to: number): void {
    this.#from = from
    this.#runs.enterChunk()
    const words = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
    let i = from
    while (i < to && !this.#broken) {
      i = this.#inString ? this.#crossString(chunk, words, i, to) : this.#walk(chunk, i, to)
    }
    this.#flush(chunk, to)
  }

  /** The copy of what was written since the last time, twice. */
  takeTwo(): TwoCopies {
    const text = this.#long.length === 0 || this.#broken ? null : leaveOut(this.#copy.bytes, this.#long)
    const whole = this.take()
    return { brief: text === null || whole.kind === 'too_large' ? whole : { ...whole, text }, whole }
  }

  /** The copy of what was written since the last time. */
  take(): Condensed {
    const condensed: Condensed = this.#broken
      ? { kind: 'too_large' }
      : { kind: 'json', text: this.#copy.text(), names: this.#names, overflow: this.#overflow }
    this.#copy.clear()
    this.#depth = 0
    this.#isInObject = false
    this.#names = 0
    this.#overflow = false
    this.#broken = false
    this.#mute = false
    this.#muteEscape = false
    this.#skipped = 0
    this.#memberStart = -1
    this.#inString = false
    if (this.#long.length > 0) this.#long = []
    this.#due = CHARACTER
    this.#nameIsDue = false
    this.#textRoom = this.#limits.textBytesMax
    return condensed
  }

  /** Goes on outside strings, up to and over the next opening quote. */
  #walk(chunk: Buffer, from: number, to: number): number {
    for (let i = from; i < to; i++) {
      const kind = KINDS[chunk[i] as number] as number
      if (kind === PLAIN) continue
      if (kind === STRING) {
        this.#openString(i + 1)
        return i + 1
      }
      if (kind === COLON) {
        if (this.#nameIsDue) this.#openMember(chunk, i + 1)
        this.#nameIsDue = false
      } else if (kind === OBJECT || kind === ARRAY) {
        if (this.#depth >= DEPTH_MAX) this.#passOver(chunk, i)
        this.#openContainer(kind)
        if (this.#broken) return to
      } else {
        this.#closeMember(chunk, i)
        if (kind === CLOSE) this.#closeContainer()
        this.#nameIsDue = kind === COMMA && this.#isInObject
      }
    }
    return to
  }

  /** The member at hand is nested too deeply. Requests choose how deeply, where replies repeat them. */
  #passOver(chunk: Buffer, i: number): void {
    if (this.#skipped > 0) return
    if (this.#memberStart < 0) this.#broken = true
    else {
      this.#copyBytes(chunk, this.#from, this.#from + Math.max(0, this.#memberStart - this.#copy.length))
      this.#from = i
      if (!this.#broken) this.#giveUpMember()
    }
  }

  #openContainer(kind: number): void {
    this.#depth++
    // What is so deep is left out, so it need not be known what it is.
    if (this.#depth > DEPTH_MAX) {
      this.#isInObject = false
      this.#nameIsDue = false
      return
    }
    const at = this.#depth >> 3
    const bit = 1 << (this.#depth & 7)
    const others = (this.#objects[at] as number) & ~bit
    this.#objects[at] = kind === OBJECT ? others | bit : others
    this.#isInObject = kind === OBJECT
    this.#nameIsDue = kind === OBJECT
    // From here on the members of this object are limited singly.
    if (kind === OBJECT && this.#depth === 2) this.#memberStart = -1
  }

  #closeContainer(): void {
    if (this.#depth > 0) this.#depth--
    if (this.#depth > DEPTH_MAX) return
    const bit = 1 << (this.#depth & 7)
    this.#isInObject = this.#depth > 0 && ((this.#objects[this.#depth >> 3] as number) & bit) !== 0
  }

  /** The name is behind us; its value begins at `i`. */
  #openMember(chunk: Buffer, i: number): void {
    if (this.#skipped > 0) return
    if (this.#depth <= 2) {
      this.#memberDepth = this.#depth
      this.#memberStart = this.#copyLength(i)
      this.#memberNames = this.#names
      this.#memberTextRoom = this.#textRoom
    }
    if (!this.#matters) this.#skip(chunk, i)
  }

  #skip(chunk: Buffer, i: number): void {
    this.#flush(chunk, i)
    // Copying the bytes before may have shown that the whole member around it is too long.
    if (this.#skipped > 0) return
    this.#copy.append(NULL, 0, NULL.length)
    this.#skipped = this.#depth
  }

  /** The comma or bracket at `i` ends whatever was open at this depth. */
  #closeMember(chunk: Buffer, i: number): void {
    const isMember = this.#memberStart >= 0 && this.#memberDepth === this.#depth
    if (isMember && this.#copyLength(i) - this.#memberStart > this.#limits.memberBytesMax)
      this.#flush(chunk, i)
    if (isMember) this.#memberStart = -1
    if (this.#skipped === 0 || this.#skipped !== this.#depth) return
    this.#skipped = 0
    this.#from = i
  }

  #openString(i: number): void {
    const { longStringBytesMax } = this.#limits
    this.#stringStart = this.#copyLength(i)
    this.#inString = true
    this.#isName = this.#nameIsDue
    this.#name = ''
    this.#nameHasEscape = false
    this.#room = this.#isName ? longStringBytesMax : Math.max(longStringBytesMax, this.#textRoom)
    this.#roomAtFirst = this.#room
  }

  /** Goes on inside a string, up to and over its closing quote. */
  #crossString(chunk: Buffer, words: DataView, from: number, to: number): number {
    let i = from
    while (i < to) {
      if (this.#due !== CHARACTER && this.#crossEscape(chunk[i] as number)) {
        i++
        continue
      }
      if (this.#mute && !this.#isName) return this.#crossMuted(chunk, i, to)
      const stop = this.#nextStop(chunk, words, i, to)
      if (stop - i > this.#room) this.#cut(chunk, i + Math.max(0, this.#room), stop)
      this.#room -= stop - i
      i = stop
      if (i === to) break
      const byte = chunk[i] as number
      if (byte === QUOTE) {
        this.#closeString(chunk, from, i)
        return i + 1
      }
      if (this.#room <= 0) this.#cut(chunk, i, i + 1)
      if (byte === BACKSLASH) {
        this.#due = ESCAPED
        this.#nameHasEscape = true
      }
      this.#room--
      i++
    }
    if (this.#isName) this.#keepName(chunk, from, to)
    return to
  }

  /**
   * Goes on inside a string of which nothing more is copied: only its closing quote matters, which is one that is not
   * escaped.
   */
  #crossMuted(chunk: Buffer, from: number, to: number): number {
    let i = this.#muteEscape ? from + 1 : from
    this.#muteEscape = false
    while (i < to) {
      i = this.#runs.end(chunk, i, to, false)
      if (i === to) break
      if (chunk[i] === QUOTE) {
        this.#closeString(chunk, from, i)
        return i + 1
      }
      this.#muteEscape = i === to - 1
      i += 2
    }
    return to
  }

  /** False for a byte that cannot belong to the escape, and so has to be looked at again. */
  #crossEscape(byte: number): boolean {
    if (this.#due === ESCAPED) this.#due = byte === LETTER_U ? 4 : CHARACTER
    else if (byte === QUOTE) {
      this.#due = CHARACTER
      return false
    } else this.#due--
    this.#room--
    return true
  }

  /** Leaves out the rest of the string, from the first place on that is not inside a character. */
  #cut(chunk: Buffer, from: number, to: number): void {
    if (this.#mute) return
    let i = from
    while (i < to && ((chunk[i] as number) & 0xc0) === 0x80) i++
    if (i === to) return
    this.#flush(chunk, i)
    this.#mute = true
  }

  #closeString(chunk: Buffer, from: number, quote: number): void {
    this.#inString = false
    if (this.#mute) {
      this.#mute = false
      this.#from = quote
    }
    if (this.#skipped > 0) return
    if (this.#isName) {
      this.#names++
      this.#matters = this.#judgeName(chunk, from, quote)
      return
    }
    const end = this.#copyLength(quote)
    if (end - this.#stringStart > LONG_BYTES) this.#long.push(this.#stringStart, end)
    const used = this.#roomAtFirst - Math.max(0, this.#room)
    this.#textRoom = Math.max(0, this.#textRoom - used)
  }

  #judgeName(chunk: Buffer, from: number, quote: number): boolean {
    const names = this.#depth === 1 ? this.#keep : this.#drop
    let isNamed = names.hasBytes(chunk, from, quote)
    if (this.#name !== '' || this.#nameHasEscape) {
      this.#keepName(chunk, from, quote)
      isNamed = names.has(this.#nameHasEscape ? unescaped(this.#name) : this.#name)
    }
    return this.#depth === 1 ? isNamed : !isNamed
  }

  #keepName(chunk: Buffer, from: number, to: number): void {
    const room = NAME_BYTES_MAX - this.#name.length
    this.#name += chunk.toString('latin1', from, Math.min(to, from + room))
  }

  /** How long the copy is with what has come by and is not copied yet. */
  #copyLength(to: number): number {
    return this.#copy.length + (this.#mute || this.#skipped > 0 ? 0 : to - this.#from)
  }

  /** Copies what has come by since the last time, unless it is not to be copied. */
  #flush(chunk: Buffer, to: number): void {
    const from = this.#from
    this.#from = to
    if (this.#mute || this.#skipped > 0 || from >= to || this.#broken) return
    const length = this.#copy.length + to - from
    const memberStart = this.#memberStart
    if (memberStart >= 0 && length - memberStart > this.#limits.memberBytesMax) {
      // What came before the member is not yet copied if it is of this chunk too.
      this.#copyBytes(chunk, from, from + Math.max(0, memberStart - this.#copy.length))
      if (!this.#broken) this.#giveUpMember()
    } else this.#copyBytes(chunk, from, to)
  }

  #copyBytes(chunk: Buffer, from: number, to: number): void {
    // The member that may yet be given up does not count, or else the result would depend on where chunks end.
    const length = this.#memberStart >= 0 ? this.#memberStart : this.#copy.length + to - from
    if (length > this.#limits.documentBytesMax) this.#broken = true
    else this.#copy.append(chunk, from, to)
  }

  #giveUpMember(): void {
    this.#overflow = true
    this.#names = this.#memberNames
    this.#textRoom = this.#memberTextRoom
    while ((this.#long.at(-1) ?? 0) > this.#memberStart) this.#long.length -= 2
    this.#copy.truncate(this.#memberStart)
    this.#copy.append(NULL, 0, NULL.length)
    this.#skipped = this.#memberDepth
  }

  /**
   * The next byte inside the string that may have to be dealt with. Where it is a value with room for more, no escape
   * of one character is.
   */
  #nextStop(chunk: Buffer, words: DataView, from: number, to: number): number {
    const near = Math.min(from + NEAR_BYTES, to)
    const i = nextStop(chunk, words, from, near)
    if (i === to || (i < near && chunk[i] === QUOTE)) return i
    const end = Math.min(to, from + this.#room)
    return this.#isName || i >= end ? i : this.#runs.end(chunk, i, end, false)
  }
}

function unescaped(name: string): string {
  try {
    return String(JSON.parse(`"${name}"`))
  } catch {
    return name
  }
}

/**
 * The text without the insides of some strings: `ranges` has where they begin and end, by turns. Null if one of them
 * is no JSON string, so that the text is not taken for JSON where it is none. To know that costs a quarter of parsing it.
 */
function leaveOut(bytes: Buffer, ranges: readonly number[]): string | null {
  const string = new JsonString()
  string.enterChunk()
  let text = ''
  let from = 0
  for (let k = 0; k + 1 < ranges.length; k += 2) {
    const start = ranges[k] as number
    const end = ranges[k + 1] as number
    string.open(true)
    if (string.cross(bytes, start) !== end) return null
    text += bytes.toString('utf8', from, start)
    from = end
  }
  return text + bytes.toString('utf8', from, bytes.length)
}
