import { NO_USAGE, type Quantities, type Unit, type UsagePart } from '../../kernel/usage.ts'
import { isObject, type JsonObject, type ReplyDocument } from '../../metering/json-shape.ts'
import { NOTHING_STATED, type Reading } from '../../metering/meter.ts'
import { asName, asObject, Counts, quantitiesOf } from '../reading.ts'

export interface TokenSide {
  readonly total: number
  readonly quantities: Quantities
}

/** The input and output tokens; null for the one that upstream did not state plausibly. */
export interface ReportedTokens {
  readonly input: TokenSide | null
  readonly output: TokenSide | null
  readonly reasoning?: number | null
}

const NO_TOKENS: ReportedTokens = { input: null, output: null }

/** Reads any usage object of OpenAI, which has one of two sets of names. `plain`: the unit of tokens without details. */
export function readTokens(
  usage: JsonObject,
  counts: Counts,
  plain: { readonly input?: Unit; readonly output?: Unit } = {},
): ReportedTokens {
  const input = counts.read(usage['prompt_tokens'] ?? usage['input_tokens'])
  const output = counts.read(usage['completion_tokens'] ?? usage['output_tokens'])
  const inputDetails =
    usage['prompt_tokens_details'] ?? usage['input_tokens_details'] ?? usage['input_token_details']
  const outputDetails =
    usage['completion_tokens_details'] ?? usage['output_tokens_details'] ?? usage['output_token_details']
  const { reasoning_tokens: reasoning } = asObject(outputDetails)
  const sideOf = (total: number | null, details: unknown, unit: Unit | undefined, split: Split) => {
    if (total === null) return null
    const isPlain = unit !== undefined && !isObject(details)
    return { total, quantities: isPlain ? quantitiesOf({ [unit]: total }) : split(total, asObject(details)) }
  }
  return {
    input: sideOf(input, inputDetails, plain.input, (total, details) =>
      splitInput(total, usage, details, counts),
    ),
    output: sideOf(output, outputDetails, plain.output, (total, details) =>
      splitOutput(total, details, counts),
    ),
    reasoning: typeof reasoning === 'number' ? reasoning : null,
  }
}

type Split = (total: number, details: JsonObject) => Quantities

/** Merges a later usage report of the same reply. Reports are running totals: a lower one is ignored and flagged. */
function mergeTokens(before: ReportedTokens, now: ReportedTokens, counts: Counts): ReportedTokens {
  return {
    input: laterSide(before.input, now.input, counts),
    output: laterSide(before.output, now.output, counts),
    reasoning: now.reasoning ?? before.reasoning ?? null,
  }
}

function laterSide(before: TokenSide | null, now: TokenSide | null, counts: Counts): TokenSide | null {
  if (before === null || now === null) return now ?? before
  if (now.total >= before.total) return now
  counts.markSuspect()
  return before
}

export class ReplyFacts {
  readonly counts = new Counts()
  tokens: ReportedTokens = NO_TOKENS
  error: string | null = null
  #id: string | null = null
  #model: string | null = null
  #serviceTier: string | null = null

  get id(): string | null {
    return this.#id
  }

  readHead(object: JsonObject): void {
    this.#id = asName(object['id']) ?? this.#id
    this.#model = asName(object['model']) ?? this.#model
    this.#serviceTier = asName(object['service_tier']) ?? this.#serviceTier
  }

  readError({ error }: JsonObject): void {
    if (isObject(error)) this.error = errorNameOf(error)
  }

  readUsage({ usage }: JsonObject, document: ReplyDocument): boolean {
    if (usage === null || usage === undefined) return false
    if (!isObject(usage) || document.repeatsNames()) this.counts.markSuspect()
    this.tokens = mergeTokens(this.tokens, readTokens(asObject(usage), this.counts), this.counts)
    return isObject(usage)
  }

  /** `isFinal`: the output that was stated is all of it. */
  reading(
    isFinal: boolean,
    stopReason: string | null,
    parts: readonly UsagePart[] = [partOf(null, this.tokens)],
  ): Reading {
    const { input, output, reasoning = null } = this.tokens
    const { suspect } = this.counts
    return {
      ...NOTHING_STATED,
      usage: {
        ...NO_USAGE,
        parts,
        modelServed: this.#model,
        serviceTier: this.#serviceTier,
        stopReason,
        suspect,
      },
      inputKnown: input !== null,
      outputKnown: output !== null && isFinal,
      outputTokensSeen: output?.total ?? 0,
      error: this.error,
      objectId: this.#id,
      reasoningTokens: reasoning,
    }
  }
}

export function partOf(model: string | null, tokens: ReportedTokens): UsagePart {
  return {
    model,
    quantities: { ...tokens.input?.quantities, ...tokens.output?.quantities },
    promptTokens: tokens.input?.total ?? 0,
  }
}

/**
 * Splits the input total by its details. Details may overlap: upstream does not say whether a token can be both read
 * from and written to the cache, and often not whether cached tokens were text or audio. So each detail is taken from
 * the remaining total, cache writes first because they cost most, and text gets the rest. No token is counted twice,
 * and the details never exceed the total.
 */
function splitInput(total: number, usage: JsonObject, details: JsonObject, counts: Counts): Quantities {
  let remaining = total
  const take = (count: number): number => {
    const taken = Math.min(count, remaining)
    remaining -= taken
    return taken
  }
  const part = (value: unknown): number => {
    const count = counts.read(value) ?? 0
    if (count > total) counts.markSuspect()
    return count
  }

  const ttl = asObject(details['cache_write_tokens_details'])
  const written12h = part(ttl['ttl_12h_tokens'])
  const written = Math.max(part(details['cache_write_tokens']), written12h + part(ttl['ttl_30m_tokens']))
  const cachedDetails = asObject(usage['cached_tokens_details'] ?? details['cached_tokens_details'])
  const cachedImage = part(cachedDetails['cached_image_tokens'] ?? cachedDetails['image_tokens'])
  const cachedAudio = part(cachedDetails['cached_audio_tokens'] ?? cachedDetails['audio_tokens'])
  const cached = part(usage['cached_tokens'] ?? details['cached_tokens'])
  const audio = part(details['audio_tokens'])
  const image = part(details['image_tokens'])

  return quantitiesOf({
    cache_write_12h_tokens: take(written12h),
    cache_write_30m_tokens: take(written - written12h),
    image_cache_read_tokens: take(Math.min(cachedImage, image)),
    audio_cache_read_tokens: take(Math.min(cachedAudio, audio)),
    cache_read_tokens: take(
      Math.max(0, cached - Math.min(cachedImage, image) - Math.min(cachedAudio, audio)),
    ),
    audio_input_tokens: take(Math.max(0, audio - cachedAudio)),
    image_input_tokens: take(Math.max(0, image - cachedImage)),
    input_tokens: remaining,
  })
}

/** Reasoning and predictions, accepted or not, are already in the output total. */
function splitOutput(total: number, details: JsonObject, counts: Counts): Quantities {
  const audio = counts.read(details['audio_tokens']) ?? 0
  const image = counts.read(details['image_tokens']) ?? 0
  if (audio + image > total) counts.markSuspect()
  const audioPart = Math.min(audio, total)
  const imagePart = Math.min(image, total - audioPart)
  return quantitiesOf({
    audio_output_tokens: audioPart,
    image_output_tokens: imagePart,
    output_tokens: total - audioPart - imagePart,
  })
}

export function errorNameOf(error: JsonObject): string {
  return asName(error['code']) ?? asName(error['type']) ?? 'error'
}
