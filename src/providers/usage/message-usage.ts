import type { Quantities, UsagePart } from '../../kernel/usage.ts'
import type { JsonDocument } from '../../metering/json-document.ts'
import { Counts, quantitiesOf } from './counts.ts'
import {
  exceedTotals,
  type Iteration,
  type IterationContext,
  iterationParts,
  type MessageTokens,
  messagePart,
  readIterations,
  readSplit,
  splitWrites,
  type WriteSplit,
  withoutDeclined,
} from './message-parts.ts'
import { isObject, nameAt, objectAt, type WireObject } from './wire-value.ts'

/** Where a usage object stood: in `message_start`, in a `message_delta` before or at the end, in a whole message. */
export type UsagePlace = 'start' | 'running' | 'final' | 'whole'

interface Totals {
  input: number | null
  written: number | null
  read: number | null
  output: number | null
  webSearches: number | null
}

const nothing = (): Totals => ({ input: null, written: null, read: null, output: null, webSearches: null })

export interface SettledMessage {
  readonly parts: readonly UsagePart[]
  readonly calls: Quantities
  readonly inputKnown: boolean
  readonly outputKnown: boolean
}

/**
 * Merges what a message says about usage, once or in the course of a stream. `message_start` has everything but the
 * output, of which it only has a placeholder. Each `message_delta` has totals of the whole message so far, which
 * replace those before and are never added to them; what it leaves out stays as it was.
 */
export class MessageUsage {
  readonly #counts = new Counts()
  readonly #start = nothing()
  readonly #later = nothing()
  #split: WriteSplit | null = null
  #splitIsOlder = false
  #iterations: readonly Iteration[] = []
  #isFinal = false
  /** Another attempt, or a credit for one, made other figures of it. */
  #hasFallback = false
  serviceTier: string | null = null
  speed: string | null = null
  geography: string | null = null

  get suspect(): boolean {
    return this.#counts.suspect
  }

  get inputKnown(): boolean {
    return this.#start.input !== null || this.#later.input !== null
  }

  get outputTokensSeen(): number {
    return this.#later.output ?? this.#start.output ?? 0
  }

  noteFallback(): void {
    this.#hasFallback = true
  }

  /** The message is complete: what was said last is final, even if it did not say so. */
  noteEnd(): void {
    this.#isFinal = true
  }

  /** The model of the attempt that served the message, where the entries name it. */
  fallbackModel(): string | null {
    return this.#iterations.findLast((entry) => entry.type === 'fallback_message')?.model ?? null
  }

  read(value: unknown, place: UsagePlace, document: JsonDocument): void {
    if (value === null || value === undefined) return
    if (!isObject(value) || document.repeatsNames()) this.#counts.doubt()
    const usage = objectAt(value)
    this.#readTotals(usage, place === 'start' ? this.#start : this.#later)
    this.#splitIsOlder = place === 'running' || place === 'final'
    const split = readSplit(usage['cache_creation'], this.#counts)
    if (split !== null) {
      this.#split = split
      this.#splitIsOlder = false
    }
    const iterations = readIterations(usage['iterations'], this.#counts)
    if (iterations.length > 0) this.#iterations = iterations
    if (isObject(usage['fallback_credit']) || this.fallbackModel() !== null) this.noteFallback()
    if (place === 'final' || place === 'whole') this.#isFinal = true
    this.serviceTier = nameAt(usage['service_tier']) ?? this.serviceTier
    this.speed = nameAt(usage['speed']) ?? this.speed
    this.geography = nameAt(usage['inference_geo']) ?? this.geography
  }

  settle(context: IterationContext): SettledMessage {
    const totals = this.#totals()
    const calls = quantitiesOf({ web_searches: this.#later.webSearches ?? this.#start.webSearches })
    if (!exceedTotals(this.#iterations, context.modelServed)) {
      return {
        parts: [this.#totalsPart(totals)],
        calls,
        inputKnown: totals.input !== null,
        outputKnown: totals.output !== null,
      }
    }
    const billed = withoutDeclined(this.#iterations, context.isRefusal)
    const parts = iterationParts(billed, context, this.#counts)
    // Compactions and advisors come on top of the totals; samplings are what the totals are made of.
    const isSampled = this.#iterations.some(({ type }) => type === 'message' || type === 'fallback_message')
    const own = isSampled ? [] : [this.#totalsPart(totals)]
    const counted: MessageTokens[] = billed.map((entry) => entry.tokens)
    return {
      parts: [...own, ...parts],
      calls,
      inputKnown: counted.every(({ input }) => input !== null) && (isSampled || totals.input !== null),
      outputKnown:
        this.#isFinal &&
        counted.every(({ output }) => output !== null) &&
        (isSampled || totals.output !== null),
    }
  }

  #readTotals(usage: WireObject, into: Totals): void {
    const counts = this.#counts
    into.input = counts.readRising(usage['input_tokens'], into.input)
    into.written = counts.readRising(usage['cache_creation_input_tokens'], into.written)
    into.read = counts.readRising(usage['cache_read_input_tokens'], into.read)
    into.output = counts.readRising(usage['output_tokens'], into.output)
    const tools = objectAt(usage['server_tool_use'])
    into.webSearches = counts.readRising(tools['web_search_requests'], into.webSearches)
  }

  #totals(): MessageTokens {
    return {
      input: this.#latest('input'),
      written: this.#latest('written'),
      read: this.#latest('read'),
      split: this.#split,
      output: this.#isFinal ? this.#later.output : null,
    }
  }

  /** Totals only rise, unless another attempt took over: then the later ones are its own. */
  #latest(name: 'input' | 'written' | 'read'): number | null {
    const start = this.#start[name]
    const later = this.#later[name]
    if (start === null || later === null) return later ?? start
    if (later >= start || this.#hasFallback) return later
    this.#counts.doubt()
    return start
  }

  #totalsPart(totals: MessageTokens): UsagePart {
    const split = this.#splitOfIterations(totals.written) ?? totals.split
    return messagePart(null, totals, splitWrites(totals.written, split, this.#splitIsOlder, this.#counts))
  }

  /** The entries know of writes that were made after `message_start`; where they account for all, they are right. */
  #splitOfIterations(written: number | null): WriteSplit | null {
    let fiveMinutes = 0
    let oneHour = 0
    for (const { tokens } of this.#iterations) {
      fiveMinutes += tokens.split?.fiveMinutes ?? 0
      oneHour += tokens.split?.oneHour ?? 0
    }
    return this.#iterations.length > 0 && fiveMinutes + oneHour === written ? { fiveMinutes, oneHour } : null
  }
}
