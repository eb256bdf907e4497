import { limits } from '../kernel/limits.ts'
import { type PromptTextSink, PromptTexts } from './prompt-texts.ts'
import { type CountedAs, roughShares, SHARES_PER_TOKEN } from './rough-tokens.ts'
import { TextSlices } from './text-slices.ts'

/** What the counting thread is told. A body comes piece by piece, the next when it was asked for. */
export type CountOrder =
  | { readonly kind: 'texts'; readonly id: number; readonly texts: readonly string[] }
  | {
      readonly kind: 'body'
      readonly id: number
      readonly countedAs: CountedAs
      readonly piece: Uint8Array
      readonly isLast: boolean
    }
  /** Nobody waits for it any more. */
  | { readonly kind: 'drop'; readonly id: number }

/** What it answers: what all that it was given so far comes to. */
export interface CountAnswer {
  readonly id: number
  readonly kind: 'more' | 'done'
  readonly tokens: number
  /** The body was no JSON object; the tokens found in it mean nothing. */
  readonly isUnread: boolean
}

/**
 * Counts for many calls at once, a slice of a call at a time. Whoever has had the least of it is next: a short text is counted
 * at once, however many long ones are under way, and no call waits for another's work but a slice of it.
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
