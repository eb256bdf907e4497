import { addQuantities, NO_USAGE, type Usage, type UsagePart } from '../../kernel/usage.ts'
import { isObject, type JsonObject, type ReplyDocument } from '../../metering/json-shape.ts'
import { asName, asObject, Counts, quantitiesOf } from '../reading.ts'

const ITERATIONS_MAX = 1000
const PARTS_MAX = 64

/** Cache writes by lifetime: five minutes or an hour. */
interface WriteSplit {
  readonly fiveMinutes: number
  readonly oneHour: number
}

/** The totals of a usage object. A `message_delta` states totals of the whole message so far. */
type MessageTokens = Readonly<Record<'input' | 'written' | 'read' | 'output' | 'searches', number | null>>

const NO_TOKENS: MessageTokens = { input: null, written: null, read: null, output: null, searches: null }

/** The tokens of a message or `iterations` entry. Totals only rise above `before`, unless they `mayFall`. */
function readMessageTokens(
  usage: JsonObject,
  counts: Counts,
  before = NO_TOKENS,
  mayFall = false,
): MessageTokens {
  const next = (value: unknown, total: number | null) =>
    mayFall ? (counts.read(value) ?? total) : counts.readRising(value, total)
  return {
    input: next(usage['input_tokens'], before.input),
    written: next(usage['cache_creation_input_tokens'], before.written),
    read: next(usage['cache_read_input_tokens'], before.read),
    output: next(usage['output_tokens'], before.output),
    searches: next(asObject(usage['server_tool_use'])['web_search_requests'], before.searches),
  }
}

function readSplit({ cache_creation: value }: JsonObject, counts: Counts): WriteSplit | null {
  const fiveMinutes = counts.read(asObject(value)['ephemeral_5m_input_tokens'])
  const oneHour = counts.read(asObject(value)['ephemeral_1h_input_tokens'])
  if (fiveMinutes === null && oneHour === null) return null
  return { fiveMinutes: fiveMinutes ?? 0, oneHour: oneHour ?? 0 }
}

/**
 * Splits the total of cache writes by lifetime. The split may be older than the total: additional writes come from
 * breakpoints that server tools set, which live five minutes. If the split exceeds its total, an older split is
 * ignored; otherwise the larger of the two counts.
 */
function splitWrites(
  written: number | null,
  split: WriteSplit | null,
  isOlder: boolean,
  counts: Counts,
): WriteSplit {
  if (split === null) return { fiveMinutes: written ?? 0, oneHour: 0 }
  if (written === null) return split
  const exceedsTotal = split.fiveMinutes + split.oneHour > written
  if (exceedsTotal) counts.markSuspect()
  if (exceedsTotal && !isOlder) return split
  const oneHour = Math.min(split.oneHour, written)
  return { fiveMinutes: written - oneHour, oneHour }
}

function messagePart(model: string | null, tokens: MessageTokens, writes: WriteSplit): UsagePart {
  const input = tokens.input ?? 0
  const read = tokens.read ?? 0
  return {
    model,
    quantities: quantitiesOf({
      input_tokens: input,
      cache_read_tokens: read,
      cache_write_5m_tokens: writes.fiveMinutes,
      cache_write_1h_tokens: writes.oneHour,
      output_tokens: tokens.output,
    }),
    promptTokens: input + read + writes.fiveMinutes + writes.oneHour,
  }
}

interface Iteration {
  readonly type: string
  readonly model: string | null
  readonly tokens: MessageTokens
  readonly split: WriteSplit | null
}

function readIterations(value: unknown, counts: Counts): Iteration[] {
  if (value === null || value === undefined) return []
  if (!Array.isArray(value)) {
    counts.markSuspect()
    return []
  }
  if (value.length > ITERATIONS_MAX) counts.markSuspect()
  return value.slice(0, ITERATIONS_MAX).flatMap((entry): Iteration[] => {
    if (!isObject(entry)) counts.markSuspect()
    const wire = asObject(entry)
    const type = asName(wire['type'])
    if (type === null) return []
    const tokens = readMessageTokens(wire, counts)
    return [{ type, model: asName(wire['model']), tokens, split: readSplit(wire, counts) }]
  })
}

const isSampling = ({ type }: Pick<Iteration, 'type'>): boolean =>
  type === 'message' || type === 'fallback_message'

/** Whether the entries include work that the totals leave out: other attempts, or kinds other than messages. */
function exceedTotals(iterations: readonly Iteration[], modelServed: string | null): boolean {
  if (iterations.length === 0) return false
  const models = new Set(iterations.map((entry) => entry.model ?? modelServed))
  return models.size > 1 || iterations.some((entry) => entry.type !== 'message')
}

interface IterationContext {
  readonly modelServed: string | null
  readonly modelAsked: string | null
  readonly isRefusal: boolean
}

/** Removes attempts that were declined before any output, which are free. In a refusal the last attempt is one too. */
function withoutDeclined(iterations: readonly Iteration[], isRefusal: boolean): readonly Iteration[] {
  const lastFallback = iterations.findLastIndex((entry) => entry.type === 'fallback_message')
  const isDeclined = (entry: Iteration, at: number): boolean =>
    isSampling(entry) && entry.tokens.output === 0 && (at < lastFallback || isRefusal)
  return iterations.filter((entry, at) => !isDeclined(entry, at))
}

/** One part per model that sampled, and one per compaction and advisor. */
function iterationParts(
  iterations: readonly Iteration[],
  { modelServed, modelAsked }: IterationContext,
  counts: Counts,
): UsagePart[] {
  const parts = new Map<string, UsagePart>()
  for (const [at, { type, model: stated, tokens, split }] of iterations.entries()) {
    const named = type === 'compaction' ? (stated ?? modelAsked) : stated
    const model = named === modelServed ? null : named
    const part = messagePart(model, tokens, splitWrites(tokens.written, split, false, counts))
    const isAdded = isSampling({ type }) || parts.size >= PARTS_MAX - 1
    const key = isAdded ? `model ${model}` : String(at)
    const before = parts.get(key)
    const quantities = addQuantities(before?.quantities ?? {}, part.quantities)
    const promptTokens = (before?.promptTokens ?? 0) + part.promptTokens
    parts.set(key, { model, quantities, promptTokens })
  }
  return [...parts.values()]
}

/** The location of a usage object: `message_start`, a `message_delta` (running or final), or a whole message. */
type UsagePosition = 'start' | 'running' | 'final' | 'whole'

/**
 * Merges the usage objects of a message or stream. `message_start` has everything except the output, for which it has a
 * placeholder. Each `message_delta` has totals so far, which replace earlier totals and are never added; omitted totals
 * stay.
 */
export class MessageUsage {
  readonly #counts = new Counts()
  #tokens = NO_TOKENS
  /** The output of `message_start`, which is a placeholder. */
  #outputBegun: number | null = null
  #split: WriteSplit | null = null
  #splitIsOlder = false
  #iterations: readonly Iteration[] = []
  #isFinal = false
  /** Whether a fallback, or a credit for one, changed the totals. Later totals may then be lower than at the start. */
  #hasFallback = false
  stated: Usage = NO_USAGE

  get suspect(): boolean {
    return this.#counts.suspect
  }

  get inputKnown(): boolean {
    return this.#tokens.input !== null
  }

  get outputTokensSeen(): number {
    return this.#tokens.output ?? this.#outputBegun ?? 0
  }

  noteFallback(): void {
    this.#hasFallback = true
  }

  /** The message is complete: the last usage is final, even without a stop reason. */
  noteEnd(): void {
    this.#isFinal = true
  }

  fallbackModel(): string | null {
    return this.#iterations.findLast((entry) => entry.type === 'fallback_message')?.model ?? null
  }

  read(value: unknown, position: UsagePosition, document: ReplyDocument): void {
    if (value === null || value === undefined) return
    if (!isObject(value) || document.repeatsNames()) this.#counts.markSuspect()
    const usage = asObject(value)
    const split = readSplit(usage, this.#counts)
    this.#splitIsOlder = split === null && (position === 'running' || position === 'final')
    this.#split = split ?? this.#split
    const iterations = readIterations(usage['iterations'], this.#counts)
    if (iterations.length > 0) this.#iterations = iterations
    if (isObject(usage['fallback_credit']) || this.fallbackModel() !== null) this.noteFallback()
    // Another attempt took over, with separate totals. A redeemed credit moves tokens from cache writes to reads.
    const isRedeemed = asObject(usage['fallback_credit'])['status'] === 'redeemed'
    const mayFall = isRedeemed || (this.#hasFallback && this.#tokens.output === null)
    const tokens = readMessageTokens(usage, this.#counts, this.#tokens, mayFall)
    if (position === 'start') this.#outputBegun = tokens.output
    this.#tokens = position === 'start' ? { ...tokens, output: null } : tokens
    if (position === 'final' || position === 'whole') this.#isFinal = true
    const { stated } = this
    this.stated = {
      ...stated,
      serviceTier: asName(usage['service_tier']) ?? stated.serviceTier,
      speed: asName(usage['speed']) ?? stated.speed,
      geography: asName(usage['inference_geo']) ?? stated.geography,
    }
  }

  result(context: IterationContext) {
    const totals = { ...this.#tokens, output: this.#isFinal ? this.#tokens.output : null }
    const calls = quantitiesOf({ web_searches: totals.searches })
    // Compactions and advisors are not part of the totals, which sum the samplings.
    const exceeds = exceedTotals(this.#iterations, context.modelServed)
    const billed = exceeds ? withoutDeclined(this.#iterations, context.isRefusal) : []
    const hasTotals = !exceeds || !this.#iterations.some(isSampling)
    const counted = [...billed.map(({ tokens }) => tokens), ...(hasTotals ? [totals] : [])]
    return {
      parts: [
        ...(hasTotals ? [this.#totalsPart(totals)] : []),
        ...iterationParts(billed, context, this.#counts),
      ],
      calls,
      inputKnown: counted.every(({ input }) => input !== null),
      outputKnown: this.#isFinal && counted.every(({ output }) => output !== null),
    }
  }

  /** The entries include cache writes after `message_start`. If they account for all writes, their split is correct. */
  #totalsPart(totals: MessageTokens): UsagePart {
    const sum = (of: keyof WriteSplit) =>
      this.#iterations.reduce((total, { split }) => total + (split?.[of] ?? 0), 0)
    const entries = { fiveMinutes: sum('fiveMinutes'), oneHour: sum('oneHour') }
    const areAll = this.#iterations.length > 0 && entries.fiveMinutes + entries.oneHour === totals.written
    const split = areAll ? entries : this.#split
    return messagePart(null, totals, splitWrites(totals.written, split, this.#splitIsOlder, this.#counts))
  }
}
