import { NO_USAGE, type Quantities, type Usage, type UsagePart } from '../../kernel/usage.ts'
import { isObject, type JsonObject, type ReplyDocument } from '../../metering/json-shape.ts'
import { Counts, nameAt, objectAt, quantitiesOf } from '../reading.ts'

const ITERATIONS_MAX = 1000
const PARTS_MAX = 64

/** Cache writes by lifetime: five minutes or an hour. */
interface WriteSplit {
  readonly fiveMinutes: number
  readonly oneHour: number
}

interface MessageTokens {
  readonly input: number | null
  readonly written: number | null
  readonly split: WriteSplit | null
  readonly read: number | null
  readonly output: number | null
}

function readSplit(value: unknown, counts: Counts): WriteSplit | null {
  if (!isObject(value)) return null
  const fiveMinutes = counts.read(value['ephemeral_5m_input_tokens'])
  const oneHour = counts.read(value['ephemeral_1h_input_tokens'])
  return fiveMinutes === null && oneHour === null
    ? null
    : { fiveMinutes: fiveMinutes ?? 0, oneHour: oneHour ?? 0 }
}

const NO_TOKENS: MessageTokens = { input: null, written: null, split: null, read: null, output: null }

/** The tokens of a message or of an `iterations` entry. Totals continue from `before` and can only rise. */
function readMessageTokens(usage: JsonObject, counts: Counts, before = NO_TOKENS): MessageTokens {
  return {
    input: counts.readRising(usage['input_tokens'], before.input),
    written: counts.readRising(usage['cache_creation_input_tokens'], before.written),
    split: readSplit(usage['cache_creation'], counts),
    read: counts.readRising(usage['cache_read_input_tokens'], before.read),
    output: counts.readRising(usage['output_tokens'], before.output),
  }
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
  const sum = split.fiveMinutes + split.oneHour
  if (written === null) return split
  if (written >= sum) return { fiveMinutes: written - split.oneHour, oneHour: split.oneHour }
  counts.doubt()
  if (!isOlder) return split
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
}

function readIterations(value: unknown, counts: Counts): Iteration[] {
  if (value === null || value === undefined) return []
  if (!Array.isArray(value)) {
    counts.doubt()
    return []
  }
  if (value.length > ITERATIONS_MAX) counts.doubt()
  return value.slice(0, ITERATIONS_MAX).flatMap((entry): Iteration[] => {
    if (!isObject(entry)) counts.doubt()
    const wire = objectAt(entry)
    const type = nameAt(wire['type'])
    if (type === null) return []
    return [{ type, model: nameAt(wire['model']), tokens: readMessageTokens(wire, counts) }]
  })
}

const isSampling = (entry: Iteration): boolean =>
  entry.type === 'message' || entry.type === 'fallback_message'

/** Whether the entries exceed the totals: the totals then cover only one attempt or one kind. */
function exceedTotals(iterations: readonly Iteration[], modelServed: string | null): boolean {
  const models = new Set(iterations.map((entry) => entry.model ?? modelServed))
  return models.size > 1 || iterations.some((entry) => entry.type !== 'message')
}

interface IterationContext {
  readonly modelServed: string | null
  readonly modelAsked: string | null
  readonly isRefusal: boolean
}

/** Attempts that were declined before any output are listed but free; in a refusal, also the last one. */
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
  const parts: UsagePart[] = []
  const sampled = new Map<string | null, number>()
  for (const entry of iterations) {
    const named = entry.type === 'compaction' ? (entry.model ?? modelAsked) : entry.model
    const model = named === modelServed ? null : named
    const writes = splitWrites(entry.tokens.written, entry.tokens.split, false, counts)
    const part = messagePart(model, entry.tokens, writes)
    const last = parts.length < PARTS_MAX ? -1 : parts.findLastIndex((each) => each.model === model)
    const same = isSampling(entry) ? (sampled.get(model) ?? -1) : last
    const earlier = parts[same]
    if (earlier !== undefined) parts[same] = addParts(earlier, part)
    else {
      parts.push(part)
      if (isSampling(entry)) sampled.set(model, parts.length - 1)
    }
  }
  return parts
}

function addParts(a: UsagePart, b: UsagePart): UsagePart {
  const quantities: Record<string, number> = { ...a.quantities }
  for (const [unit, count] of Object.entries(b.quantities)) quantities[unit] = (quantities[unit] ?? 0) + count
  return { model: a.model, quantities, promptTokens: a.promptTokens + b.promptTokens }
}

/** Where a usage object was: in `message_start`, in a `message_delta` (running or final), in a whole message. */
type UsagePosition = 'start' | 'running' | 'final' | 'whole'

interface SettledMessage {
  readonly parts: readonly UsagePart[]
  readonly calls: Quantities
  readonly inputKnown: boolean
  readonly outputKnown: boolean
}

/**
 * Merges the usage objects of a message or stream. `message_start` has everything except the output, for which it has a
 * placeholder. Each `message_delta` has totals so far, which replace earlier totals and are never added; omitted totals
 * stay.
 */
export class MessageUsage {
  readonly #counts = new Counts()
  readonly #tokens = { start: NO_TOKENS, later: NO_TOKENS }
  readonly #searches: { start: number | null; later: number | null } = { start: null, later: null }
  #split: WriteSplit | null = null
  #splitIsOlder = false
  #iterations: readonly Iteration[] = []
  #isFinal = false
  /** A fallback, or a credit for one, changed the figures: later totals may be lower than at the start. */
  #hasFallback = false
  stated: Usage = NO_USAGE

  get suspect(): boolean {
    return this.#counts.suspect
  }

  get inputKnown(): boolean {
    return this.#tokens.start.input !== null || this.#tokens.later.input !== null
  }

  get outputTokensSeen(): number {
    return this.#tokens.later.output ?? this.#tokens.start.output ?? 0
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

  read(value: unknown, place: UsagePosition, document: ReplyDocument): void {
    if (value === null || value === undefined) return
    if (!isObject(value) || document.repeatsNames()) this.#counts.doubt()
    const usage = objectAt(value)
    const when = place === 'start' ? 'start' : 'later'
    const tokens = readMessageTokens(usage, this.#counts, this.#tokens[when])
    this.#tokens[when] = tokens
    this.#splitIsOlder = tokens.split === null && (place === 'running' || place === 'final')
    this.#split = tokens.split ?? this.#split
    const tools = objectAt(usage['server_tool_use'])
    this.#searches[when] = this.#counts.readRising(tools['web_search_requests'], this.#searches[when])
    const iterations = readIterations(usage['iterations'], this.#counts)
    if (iterations.length > 0) this.#iterations = iterations
    if (isObject(usage['fallback_credit']) || this.fallbackModel() !== null) this.noteFallback()
    if (place === 'final' || place === 'whole') this.#isFinal = true
    const { stated } = this
    this.stated = {
      ...stated,
      serviceTier: nameAt(usage['service_tier']) ?? stated.serviceTier,
      speed: nameAt(usage['speed']) ?? stated.speed,
      geography: nameAt(usage['inference_geo']) ?? stated.geography,
    }
  }

  settle(context: IterationContext): SettledMessage {
    const totals = this.#totals()
    const calls = quantitiesOf({ web_searches: this.#searches.later ?? this.#searches.start })
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
    // Compactions and advisors are not part of the totals, which sum the samplings.
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

  #totals(): MessageTokens {
    return {
      input: this.#latest('input'),
      written: this.#latest('written'),
      read: this.#latest('read'),
      split: this.#split,
      output: this.#isFinal ? this.#tokens.later.output : null,
    }
  }

  /** Totals only rise, unless another attempt took over: later totals are then that attempt's. */
  #latest(name: 'input' | 'written' | 'read'): number | null {
    const start = this.#tokens.start[name]
    const later = this.#tokens.later[name]
    if (start === null || later === null) return later ?? start
    if (later >= start || this.#hasFallback) return later
    this.#counts.doubt()
    return start
  }

  #totalsPart(totals: MessageTokens): UsagePart {
    const split = this.#splitOfIterations(totals.written) ?? totals.split
    return messagePart(null, totals, splitWrites(totals.written, split, this.#splitIsOlder, this.#counts))
  }

  /** The entries include cache writes after `message_start`. If they account for all writes, their split is correct. */
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
