import { RecentEntries } from '../kernel/memory.ts'
import {
  IMAGE_TOOL,
  type Quantities,
  UNIT_PRICES,
  type Unit,
  type Usage,
  type UsagePart,
} from '../kernel/usage.ts'
import type { Metered } from '../metering/meter.ts'
import { NOT_READ, type RequestFacts } from '../metering/request-facts.ts'
import { tokenLimits } from '../pricing/hold.ts'
import { findModel, isPricedPer } from '../pricing/price-book.ts'
import {
  countInputAudio,
  countOutputAudio,
  fileIn,
  outputAudioTokens,
  PCM_BYTES_PER_MS,
} from '../providers/chat/audio.ts'
import type { CallPlan } from './call-plan.ts'

/** When a call is added, the weight of all earlier calls decreases by this factor, so that recent calls count most. */
const DECAY = 0.8

/** Bounds for learned values, so that a customer cannot train estimates far down. */
const TOKENS_PER_BYTE = { min: 1 / 8, max: 1, default: 1 / 4 }
const TOKENS_PER_MS = { min: 0.01, max: 0.5, default: 0.05 }

/** The speed of shorter outputs is not learned, because the time to the first token dominates. */
const SPEED_TOKENS_MIN = 16

const CACHED_CALLS = 3

const ENTRIES_MIN = 10_000

const CONTAINER_MS = 20 * 60_000

export interface CompleteCall {
  readonly keyId: string
  readonly model: string
  readonly tier: string
  readonly outputTokens: number
  readonly visibleTokens: number | null
  readonly visibleBytes: number
  /** From upstream's first event to the end, minus the time in which the client did not read; null: not comparable. */
  readonly generatedMs: number | null
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly requestBytes: number | null
}

type Figures = ReturnType<Estimates['figuresFor']>

/** Statistics of the latest complete calls on this node, in bounded memory, per key, model and tier, and per model. */
export class Estimates {
  readonly #learned = new RecentEntries<LearnedRatios>(ENTRIES_MIN)
  readonly #cachedShares = new RecentEntries<readonly number[]>(ENTRIES_MIN)
  readonly #containers = new RecentEntries<number>(ENTRIES_MIN)

  learn(call: CompleteCall): void {
    const { keyId, model, tier } = call
    for (const name of [entryKey(keyId, model, tier), model]) {
      const learned = this.#learned.get(name) ?? this.#learned.set(name, new LearnedRatios())
      learned.add(call)
    }
    if (call.inputTokens === 0) return
    const own = entryKey(keyId, model)
    const share = Math.min(1, call.cachedTokens / call.inputTokens)
    this.#cachedShares.set(own, [...(this.#cachedShares.get(own) ?? []).slice(1 - CACHED_CALLS), share])
  }

  figuresFor(keyId: string, modelAsked: string | null, tier: string) {
    const model = modelAsked ?? ''
    const own = this.#learned.get(entryKey(keyId, model, tier))
    const all = this.#learned.get(model)
    const figure = (ratio: 'output' | 'speed' | 'input', bounds: typeof TOKENS_PER_BYTE) => {
      const value = own?.[ratio].value ?? all?.[ratio].value ?? bounds.default
      return Math.min(Math.max(value, bounds.min), bounds.max)
    }
    return {
      outputTokensPerByte: figure('output', TOKENS_PER_BYTE),
      outputTokensPerMs: figure('speed', TOKENS_PER_MS),
      inputTokensPerByte: figure('input', TOKENS_PER_BYTE),
      cachedShare: Math.min(...(this.#cachedShares.get(entryKey(keyId, model)) ?? [0])),
    }
  }

  chargeContainers(ids: readonly string[], nowMs: number): number {
    let charged = 0
    for (const id of ids) {
      const sinceMs = this.#containers.get(id)
      if (sinceMs !== undefined && nowMs - sinceMs < CONTAINER_MS) continue
      this.#containers.set(id, nowMs)
      charged++
    }
    return charged
  }
}

function entryKey(keyId: string, model: string, tier = ''): string {
  return `${keyId}\0${model}\0${tier}`
}

class LearnedRatios {
  readonly output = new Ratio()
  readonly speed = new Ratio()
  readonly input = new Ratio()

  add(call: CompleteCall): void {
    if (call.visibleTokens !== null) this.output.add(call.visibleTokens, call.visibleBytes)
    if (call.outputTokens >= SPEED_TOKENS_MIN && call.generatedMs !== null)
      this.speed.add(call.outputTokens, call.generatedMs)
    if (call.requestBytes !== null) this.input.add(call.inputTokens, call.requestBytes)
  }
}

class Ratio {
  #numerator = 0
  #denominator = 0

  get value(): number | undefined {
    return this.#denominator > 0 ? this.#numerator / this.#denominator : undefined
  }

  add(numerator: number, denominator: number): void {
    if (!(numerator > 0 && denominator > 0)) return
    this.#numerator = this.#numerator * DECAY + numerator
    this.#denominator = this.#denominator * DECAY + denominator
  }
}

export type ReplyTimes = ReturnType<Silence['timesAt']>

/** Shorter gaps between pieces of output count as network delay, not as reasoning. */
const PAUSE_MS_MAX = 1_000

/** A reply that ends this soon after a pause may have ended during the pause. */
const AFTER_PAUSE_MS = 5_000

/** Sums the time without visible output: from the first event to the first output, and later gaps above a second. */
export class Silence {
  #visibleBytes = 0
  #firstMs: number | null = null
  #lastMs = 0
  #silentMs = 0
  #pausedSinceMs: number | null = null
  #pausedMs = 0
  #longestPause = { ms: 0, endedMs: -Infinity }

  recordOutput(visibleBytes: number, nowMs: number): void {
    if (this.#firstMs === null) {
      this.#firstMs = nowMs
      this.#lastMs = nowMs
    }
    if (visibleBytes === this.#visibleBytes) return
    this.#silentMs = this.silentMsAt(nowMs)
    this.#visibleBytes = visibleBytes
    this.#lastMs = nowMs
  }

  pause(nowMs: number): void {
    this.#pausedSinceMs ??= nowMs
  }

  resume(nowMs: number): void {
    if (this.#pausedSinceMs === null) return
    const pausedMs = nowMs - this.#pausedSinceMs
    this.#pausedSinceMs = null
    const { ms, endedMs } = this.#longestPause
    if (pausedMs >= ms || nowMs - endedMs > AFTER_PAUSE_MS)
      this.#longestPause = { ms: pausedMs, endedMs: nowMs }
    if (this.#firstMs === null) return
    this.#pausedMs += pausedMs
    this.#lastMs += pausedMs
  }

  timesAt(nowMs: number) {
    const { ms, endedMs } = this.#longestPause
    const pauseMs = nowMs - (this.#pausedSinceMs ?? nowMs)
    return {
      silentMs: this.silentMsAt(nowMs),
      /** From upstream's first event on, minus the client's pauses; null for a reply without events. */
      generatedMs: this.#firstMs === null ? null : nowMs - this.#firstMs - this.#pausedMs - pauseMs,
      /** How long the client had not been reading when the reply ended, which may be why it ended. */
      stalledMs: Math.max(pauseMs, nowMs - endedMs <= AFTER_PAUSE_MS ? ms : 0),
    }
  }

  silentMsAt(nowMs: number): number {
    if (this.#firstMs === null) return 0
    const gapMs = (this.#pausedSinceMs ?? nowMs) - this.#lastMs
    return this.#silentMs + (this.#visibleBytes === 0 || gapMs > PAUSE_MS_MAX ? gapMs : 0)
  }
}

export const NOTHING_COUNTABLE = {
  lengthBytes: 0,
  /** Content type of a multipart form, most of which is a file and not text; null for any other body. */
  formType: null as string | null,
  /** The plain bytes of the body; empty if it was encoded or not buffered. */
  pieces: [] as readonly Buffer[],
  facts: NOT_READ as RequestFacts,
}

export type CountableInput = Readonly<typeof NOTHING_COUNTABLE>

/** How the call ended. `left`: the client left early. `broken`: upstream broke off. */
export type EndedAs = 'whole' | 'left' | 'broken'

interface EstimatedCall {
  readonly keyId: string
  readonly plan: CallPlan
  readonly request: CountableInput
  readonly endedAs: EndedAs
  readonly bytesOut: number
  readonly times: ReplyTimes
  /** Whether the reply is one JSON document, of which the client sees nothing before its end. */
  readonly isDocument: boolean
  readonly elapsedMs: number
}

/** Chats stream audio as base64, 4 bytes for 3. */
const CHAT_AUDIO_BYTES_PER_MS = (PCM_BYTES_PER_MS * 4) / 3

/** An event stream longer than this has delivered part of an image. */
const IMAGE_BYTES_MIN = 1024

export async function estimateUsage(
  metered: Metered,
  call: EstimatedCall,
  estimates: Estimates,
): Promise<Usage> {
  const { usage } = metered
  const own = usage.parts.find(({ model }) => model === null)
  const others = usage.parts.filter((part) => part !== own)
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const requested = call.plan
  // Before the end of a reply, upstream only echoes the requested tier.
  const serviceTier =
    usage.serviceTier === 'auto' ? requested.serviceTier : (usage.serviceTier ?? requested.serviceTier)
  const figures = estimates.figuresFor(call.keyId, call.plan.modelAsked, tierKey(serviceTier))
  const input = metered.inputKnown ? null : await estimateInput(metered, call, figures)
  const output = metered.outputKnown ? {} : await estimateOutput(metered, call, figures)
  const images = metered.outputKnown ? [] : imageParts(metered, call)
  const quantities = { ...unitsOfKnownSides(part.quantities, metered), ...input, ...output }
  const promptTokens = input === null ? part.promptTokens : sum(input)
  return {
    ...usage,
    serviceTier,
    speed: usage.speed ?? requested.speed,
    parts: [{ ...part, quantities, promptTokens }, ...others, ...images],
  }
}

/** The known units. If input or output is unknown, all its units are estimated, except tool calls. */
function unitsOfKnownSides(quantities: Quantities, { inputKnown, outputKnown }: Metered): Quantities {
  const isKnown = (unit: string): boolean => {
    const { side } = UNIT_PRICES[unit as Unit]
    return side === 'tool' || (side === 'output' ? outputKnown : inputKnown)
  }
  return Object.fromEntries(Object.entries(quantities).filter(([unit]) => isKnown(unit)))
}

function sum({ audio_input_milliseconds: _ms, ...tokens }: Quantities): number {
  return Object.values(tokens).reduce<number>((total, count) => total + count, 0)
}

async function estimateInput(
  { usage, audio }: Metered,
  call: EstimatedCall,
  { inputTokensPerByte, cachedShare }: Figures,
): Promise<Quantities> {
  const { request, plan } = call
  const { input: tokensMax } = tokenLimits(plan, usage.modelServed, plan.version)
  if (call.plan.reader === 'transcription') {
    // A file transcribed in chunks may exceed the context window, and its hold is unbounded.
    const audioTokensMax = plan.hold.kind === 'unbounded' ? null : tokensMax
    const upload = {
      file: fileIn(request.formType ?? undefined, request.pieces),
      bodyBytes: request.lengthBytes,
    }
    return await countInputAudio(audio, isTimed(call.plan), upload, audioTokensMax)
  }
  if (request.formType !== null) return {}
  const bytes = call.plan.hidden.refersElsewhere ? textBytes(request) : request.lengthBytes
  const carried = Math.ceil(bytes * inputTokensPerByte)
  const tokens = Math.min(carried, tokensMax ?? carried)
  const cached = Math.floor(tokens * cachedShare)
  return { input_tokens: tokens - cached, ...(cached > 0 ? { cache_read_tokens: cached } : {}) }
}

/** Characters without a blank for longer than in any text: an image, audio or a document in base64. */
const MEDIA_RUN = /[A-Za-z0-9+/_-]{1024,}/g
const SEARCHED_BYTES_MAX = 16 * 1024 * 1024

/** The bytes of a request without embedded media, whose size says nothing about tokens. */
function textBytes(request: CountableInput): number {
  let [searched, media] = [0, 0]
  for (const piece of request.pieces) {
    if (searched + piece.length > SEARCHED_BYTES_MAX) break
    searched += piece.length
    for (const [run] of piece.toString('latin1').matchAll(MEDIA_RUN)) media += run.length
  }
  return searched - media
}

async function estimateOutput(metered: Metered, call: EstimatedCall, figures: Figures): Promise<Quantities> {
  const { plan, endedAs } = call
  const { hidden, answers } = plan
  const { reader } = plan
  if (reader === 'speech') {
    return await countOutputAudio(metered.audio, call.bytesOut, call.request.facts.body['response_format'])
  }
  if (reader === 'transcription' && isTimed(plan)) return {}
  if (reader === 'images') return { image_output_tokens: hidden.imageTokens * imagesMade(call) }
  const held = tokenLimits(plan, metered.usage.modelServed, plan.version)
  // An unreadable request may have turned usage reporting off, and an unreadable reply proves nothing.
  const isUnreadable = hidden.unreadable || metered.fault === 'unreadable'
  if (isUnreadable && endedAs === 'whole' && held.output !== null) return { output_tokens: held.output }
  const { text, tool, thinking } = metered.output
  const { outputTokensPerByte, outputTokensPerMs } = figures
  const seen = Math.max(metered.outputTokensSeen, (text + tool + thinking) * outputTokensPerByte)
  // Visible thinking is a summary. The time of the real thinking is part of the silence.
  const worked = (text + tool) * outputTokensPerByte + workingMs(metered, call) * outputTokensPerMs * answers
  const tokens = Math.ceil(Math.max(seen, worked))
  const audioMs = hidden.makesMedia ? call.bytesOut / CHAT_AUDIO_BYTES_PER_MS : 0
  return {
    output_tokens: Math.max(metered.outputTokensSeen, Math.min(tokens, held.output ?? tokens)),
    ...(audioMs > 0 ? { audio_output_tokens: outputAudioTokens(audioMs) } : {}),
  }
}

/** Whether the model is priced by the length of audio. */
function isTimed({ version, modelAsked, endpoint }: EstimatedCall['plan']): boolean {
  return isPricedPer('audio_input_milliseconds', findModel(version, modelAsked), endpoint)
}

/** How long the model worked invisibly. A broken call is charged only for what was delivered. */
function workingMs({ shown }: Metered, call: EstimatedCall): number {
  if (call.endedAs === 'broken') return 0
  if (call.isDocument) return call.endedAs === 'left' ? call.elapsedMs : 0
  return call.plan.hidden.mayReason || shown.reasons ? call.times.silentMs : 0
}

function imagesMade({ endedAs, isDocument, plan, bytesOut }: EstimatedCall): number {
  if (endedAs !== 'broken' || isDocument) return plan.answers
  return bytesOut > IMAGE_BYTES_MIN ? 1 : 0
}

/** The images that a tool has begun. Upstream completes them, and charges the tool's model. */
function imageParts({ imagesBegun }: Metered, { plan }: EstimatedCall): readonly UsagePart[] {
  if (imagesBegun === 0) return []
  const quantities = { image_output_tokens: imagesBegun * plan.hidden.imageTokens }
  return [{ model: IMAGE_TOOL, quantities, promptTokens: 0 }]
}

function tierKey(serviceTier: string | null): string {
  return serviceTier === null || /^(?:auto|default|standard)$/.test(serviceTier) ? '' : serviceTier
}

export function learnFrom(
  metered: Metered,
  call: Omit<EstimatedCall, 'bytesOut' | 'endedAs'>,
  estimates: Estimates,
): void {
  const { usage, output } = metered
  const [own] = usage.parts
  if (own === undefined || !metered.inputKnown || !metered.outputKnown || usage.suspect) return
  const { quantities, promptTokens } = own
  const outputTokens = quantities.output_tokens ?? 0
  if (call.plan.modelAsked === null) return
  const mayReason = call.plan.hidden.mayReason || metered.shown.reasons
  // If a model may have reasoned without stating how much, the number of visible tokens is unknown.
  const reasoningTokens = mayReason ? metered.reasoningTokens : 0
  estimates.learn({
    keyId: call.keyId,
    model: call.plan.modelAsked,
    tier: tierKey(usage.serviceTier),
    outputTokens,
    visibleTokens: reasoningTokens === null ? null : Math.max(0, outputTokens - reasoningTokens),
    visibleBytes: output.text + output.tool + output.thinking,
    generatedMs: call.plan.answers === 1 ? (call.isDocument ? call.elapsedMs : call.times.generatedMs) : null,
    inputTokens: promptTokens,
    cachedTokens: (quantities.cache_read_tokens ?? 0) + (quantities.audio_cache_read_tokens ?? 0),
    requestBytes:
      call.plan.hidden.refersElsewhere || call.request.formType !== null ? null : call.request.lengthBytes,
  })
}
