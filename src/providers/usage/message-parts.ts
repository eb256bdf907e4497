import type { UsagePart } from '../../kernel/usage.ts'
import { type Counts, quantitiesOf } from './counts.ts'
import { isObject, nameAt, objectAt, type WireObject } from './wire-value.ts'

/** A message that took more steps than this is beyond belief; the rest of them is not read. */
const ITERATIONS_MAX = 1000
/** Beyond this many parts the later ones are added to earlier ones of the same model. */
const PARTS_MAX = 64

/** Cache writes by how long they live: minutes or an hour. */
export interface WriteSplit {
  readonly fiveMinutes: number
  readonly oneHour: number
}

/** The tokens of a message or of one step towards it, each null where nothing was said. */
export interface MessageTokens {
  readonly input: number | null
  readonly written: number | null
  readonly split: WriteSplit | null
  readonly read: number | null
  readonly output: number | null
}

export function readSplit(value: unknown, counts: Counts): WriteSplit | null {
  if (!isObject(value)) return null
  const fiveMinutes = counts.read(value['ephemeral_5m_input_tokens'])
  const oneHour = counts.read(value['ephemeral_1h_input_tokens'])
  return fiveMinutes === null && oneHour === null
    ? null
    : { fiveMinutes: fiveMinutes ?? 0, oneHour: oneHour ?? 0 }
}

/** A usage object that stands for itself: that of a whole message, or of one entry of `iterations`. */
export function readMessageTokens(usage: WireObject, counts: Counts): MessageTokens {
  return {
    input: counts.read(usage['input_tokens']),
    written: counts.read(usage['cache_creation_input_tokens']),
    split: readSplit(usage['cache_creation'], counts),
    read: counts.read(usage['cache_read_input_tokens']),
    output: counts.read(usage['output_tokens']),
  }
}

/**
 * The writes of a total and a split of it that may be older. Writes that the split does not know are breakpoints
 * which server tools set by themselves, and those live five minutes. A split above its total cannot be true; if it
 * is the older one, the total replaced it, else the larger of the two counts.
 */
export function splitWrites(
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

export function messagePart(model: string | null, tokens: MessageTokens, writes: WriteSplit): UsagePart {
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

/** One entry of `usage.iterations`: a sampling, or work of another kind beside it. */
export interface Iteration {
  readonly type: string
  readonly model: string | null
  readonly tokens: MessageTokens
}

export function readIterations(value: unknown, counts: Counts): Iteration[] {
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

/** Whether the entries say more than the totals above them: then those cover only one attempt, or only one kind. */
export function exceedTotals(iterations: readonly Iteration[], modelServed: string | null): boolean {
  const models = new Set(iterations.map((entry) => entry.model ?? modelServed))
  return models.size > 1 || iterations.some((entry) => entry.type !== 'message')
}

export interface IterationContext {
  readonly modelServed: string | null
  /** The model that was asked for, where a fallback shows that another one served. */
  readonly modelAsked: string | null
  readonly isRefusal: boolean
}

/**
 * An attempt that was declined before any output is listed, but free: the first, or a fallback that was declined in its
 * turn. If the whole message is a refusal, so is the last one.
 */
export function withoutDeclined(iterations: readonly Iteration[], isRefusal: boolean): readonly Iteration[] {
  const lastFallback = iterations.findLastIndex((entry) => entry.type === 'fallback_message')
  const isDeclined = (entry: Iteration, at: number): boolean =>
    isSampling(entry) && entry.tokens.output === 0 && (at < lastFallback || isRefusal)
  return iterations.filter((entry, at) => !isDeclined(entry, at))
}

/**
 * One part for each model that sampled, and one for each compaction and each advisor, which are inferences with a
 * prompt of their own.
 */
export function iterationParts(
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
    const same = isSampling(entry)
      ? (sampled.get(model) ?? -1)
      : parts.length < PARTS_MAX
        ? -1
        : lastOf(parts, model)
    const earlier = parts[same]
    if (earlier !== undefined) parts[same] = addParts(earlier, part)
    else parts.push(part)
    if (isSampling(entry) && earlier === undefined) sampled.set(model, parts.length - 1)
  }
  return parts
}

const lastOf = (parts: readonly UsagePart[], model: string | null): number =>
  parts.findLastIndex((part) => part.model === model)

function addParts(a: UsagePart, b: UsagePart): UsagePart {
  const quantities: Record<string, number> = { ...a.quantities }
  for (const [unit, count] of Object.entries(b.quantities)) quantities[unit] = (quantities[unit] ?? 0) + count
  return { model: a.model, quantities, promptTokens: a.promptTokens + b.promptTokens }
}
