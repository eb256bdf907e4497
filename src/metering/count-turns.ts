import { limits } from '../kernel/limits.ts'
import { type PromptTextSink, PromptTexts } from './prompt-texts.ts'
import { type CountedAs, roughShares, SHARES_PER_TOKEN } from './rough-tokens.ts'

/**
 * The tokenizer's work grows with the square of a run without breaks. At this size the worst text known, ideographs without
 * a blank, takes 4 µs a character and English prose 0.2; at twice the size the ideographs take half as long again.
 */
export const SLICE_CHARS_MAX = 512

/** Cuts texts into slices of a few milliseconds of tokenizing at most. Short texts share a slice, but are counted one by one. */
export class TextSlices {
  readonly #take: (slice: readonly string[]) => void
  #slice: string[] = []
  #sliceChars = 0
  /** The end of the text at hand, which is in no slice yet. */
  #rest = ''

  constructor(take: (slice: readonly string[]) => void) {
    this.#take = take
  }

  /** More of the text at hand. */
  add(piece: string): void {
    let rest = this.#rest + piece
    while (rest.length > SLICE_CHARS_MAX) {
      const end = sliceEnd(rest)
      this.#put(rest.slice(0, end))
      rest = rest.slice(end)
    }
    this.#rest = rest
  }

  /** The text at hand ends: tokens do not reach from one text into the next. */
  endText(): void {
    if (this.#rest !== '') this.#put(this.#rest)
    this.#rest = ''
  }

  /** Hands the slice on, though there may be room for more in it. */
  flush(): void {
    if (this.#slice.length > 0) this.#take(this.#slice)
    this.#slice = []
    this.#sliceChars = 0
  }

  #put(text: string): void {
    if (this.#sliceChars + text.length > SLICE_CHARS_MAX) this.flush()
    this.#slice.push(text)
    this.#sliceChars += text.length
  }
}

/**
 * The offset of the last blank that begins a word, if there is one: no token reaches across such a blank, so the
 * count is that of the whole text. A run without blanks is cut at the limit, but not within a pair of surrogates.
 */
function sliceEnd(text: string): number {
  for (let at = text.lastIndexOf(' ', SLICE_CHARS_MAX); at > 0; at = text.lastIndexOf(' ', at - 1)) {
    if (/\S/.test(text.charAt(at + 1))) return at
  }
  const last = text.charCodeAt(SLICE_CHARS_MAX - 1)
  return last >= 0xd800 && last <= 0xdbff ? SLICE_CHARS_MAX - 1 : SLICE_CHARS_MAX
}

/** A message to the counting thread. A body comes piece by piece, the next piece when the thread has asked for it. */
export type CountOrder =
  | { readonly kind: 'texts'; readonly id: number; readonly texts: readonly string[] }
  | {
      readonly kind: 'body'
      readonly id: number
      readonly countedAs: CountedAs
      readonly piece: Uint8Array
      readonly isLast: boolean
    }
  /** The call has ended: its count is given up. */
  | { readonly kind: 'drop'; readonly id: number }

/** The counting thread's answer: the tokens of all that it was given so far for this call. */
export interface CountAnswer {
  readonly id: number
  readonly kind: 'more' | 'done'
  readonly tokens: number
  /** The body was no JSON object; the tokens found in it mean nothing. */
  readonly isUnread: boolean
}

/**
 * Counts for many calls at once, a slice of a call at a time. The call that has had the fewest turns is next: a short text
 * is counted at once, however many long texts are under way, and no call waits longer for another than for a slice.
 */
export class CountTurns {
  readonly #counts = new Map<number, Count>()
  readonly #tokensIn: (text: string) => number
  readonly #answer: (answer: CountAnswer) => void

  constructor(tokensIn: (text: string) => number, answer: (answer: CountAnswer) => void) {
    this.#tokensIn = tokensIn
    this.#answer = answer
  }

  take(order: CountOrder): void {
    if (order.kind === 'drop') {
      this.#counts.delete(order.id)
      return
    }
    const known = this.#counts.get(order.id)
    const count = known ?? new Count(order.kind === 'texts' ? 'chat' : order.countedAs)
    if (known === undefined) this.#counts.set(order.id, count)
    if (order.kind === 'texts') count.addTexts(order.texts)
    else
      count.addPiece(
        Buffer.from(order.piece.buffer, order.piece.byteOffset, order.piece.length),
        order.isLast,
      )
  }

  /** Does one piece of work. False if there was none. */
  step(): boolean {
    let id: number | null = null
    let next: Count | null = null
    for (const [candidateId, candidate] of this.#counts) {
      if (candidate.isIdle || (next !== null && candidate.turns >= next.turns)) continue
      id = candidateId
      next = candidate
    }
    if (id === null || next === null) return false
    next.step(this.#tokensIn)
    if (next.isIdle) this.#tell(id, next)
    return true
  }

  #tell(id: number, count: Count): void {
    const kind = count.isWhole ? 'done' : 'more'
    if (kind === 'done') this.#counts.delete(id)
    this.#answer({ id, kind, tokens: count.tokens, isUnread: count.isUnread })
  }
}

/** One call's count, as far as it has come. */
class Count implements PromptTextSink {
  readonly #countedAs: CountedAs
  readonly #slices = new TextSlices((slice) => this.#put(slice))
  readonly #texts = new PromptTexts(this)
  #piece: Buffer | null = null
  #isLast = false
  #waiting: (readonly string[])[] = []
  #slicesTaken = 0
  #counted = 0
  #roughShares = 0
  turns = 0
  isUnread = false

  constructor(countedAs: CountedAs) {
    this.#countedAs = countedAs
  }

  /** Nothing to do, for now or for good. */
  get isIdle(): boolean {
    return this.#piece === null && this.#waiting.length === 0
  }

  get isWhole(): boolean {
    return this.#isLast && this.isIdle
  }

  get tokens(): number {
    return this.#counted + Math.ceil(this.#roughShares / SHARES_PER_TOKEN)
  }

  addTexts(texts: readonly string[]): void {
    this.#isLast = true
    for (const text of texts) {
      this.add(text)
      this.endText()
    }
    this.#slices.flush()
  }

  addPiece(piece: Buffer, isLast: boolean): void {
    this.#piece = piece
    this.#isLast = isLast
  }

  add(piece: string): void {
    if (this.#countedAs === 'chat') this.#slices.add(piece)
    else this.#roughShares += roughShares(piece, 'messages')
  }

  endText(): void {
    this.#slices.endText()
  }

  token(): void {
    this.#counted += 1
  }

  step(tokensIn: (text: string) => number): void {
    this.turns += 1
    const slice = this.#waiting.pop()
    if (slice !== undefined) for (const text of slice) this.#counted += tokensIn(text)
    else if (this.#piece !== null) this.#look(this.#piece)
  }

  #look(piece: Buffer): void {
    this.#piece = null
    this.#texts.write(piece)
    if (!this.#isLast) return
    this.isUnread = !this.#texts.end()
    this.#slices.endText()
    this.#slices.flush()
  }

  #put(slice: readonly string[]): void {
    this.#slicesTaken += 1
    if (this.#slicesTaken <= limits.countedSlicesMax) this.#waiting.push(slice)
    else for (const text of slice) this.#roughShares += roughShares(text, 'chat')
  }
}
