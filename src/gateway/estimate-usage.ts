import type { Surface } from '../kernel/surface.ts'
import type { Quantities, Usage, UsagePart } from '../kernel/usage.ts'
import type { Metered } from '../metering/meter.ts'
import { leastBodyTokens, roughBodyTokens } from '../metering/rough-tokens.ts'
import { countMessagesTokens, type TokenCounter } from '../metering/token-counter.ts'
import type { SpeechRequest } from '../providers/chat/audio.ts'
import {
  assumedUploadMs,
  countHeard,
  countSpoken,
  isSoldByDuration,
  spokenTokens,
} from '../providers/chat/audio.ts'
import { IMAGE_TOOL_MODEL } from '../providers/chat/images.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { SURFACES } from '../providers/surfaces.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import type { BillPlan } from './pricer.ts'

/** The request as far as its input can be counted: its bytes where they are at hand and plain, and their number. */
export interface CountableInput {
  /** The bytes as they lie in memory: joining those of a large body takes longer than a call may keep others waiting. */
  readonly pieces: Buffer | readonly Buffer[] | null
  readonly lengthBytes: number
  /** The body is a form: most of it is a file, and none of the file is text. */
  readonly isForm: boolean
  /** The duration of the file that is to be transcribed, where there is a file. */
  readonly audioMs: number | null
  /** The text that speech is to be made of, as a count, and the format; null without an `input`. */
  readonly speech: SpeechRequest | null
}

/** The facts about a call that counting needs. */
export interface CountedCall {
  readonly surface: Surface
  readonly reader: UsageReader | null
  readonly plan: Pick<BillPlan, 'tokensHeld' | 'asked' | 'hold'>
  readonly modelAsked: string | null
  readonly request: CountableInput
  /** Upstream answered to the end, without stating a usage that can be billed. */
  readonly whole: boolean
  readonly unseen: UnseenWork
  /** Bytes of the reply that were passed on to the client. */
  readonly bytesOut: number
  readonly silentMs: number
}

export interface Counting {
  readonly tokenCounter: TokenCounter
  readonly outputSpeeds: OutputSpeeds
}

/** Chats stream audio as base64 of 16-bit samples at 24 kHz. */
const CHAT_AUDIO_BYTES_PER_MS = 64

/**
 * Fills in the usage that upstream did not state: input is counted in the request, output in the delivered reply, and no
 * less output than upstream has reported already. Usage that can be counted in neither is taken from the hold.
 */
export async function estimateUsage(metered: Metered, call: CountedCall, counting: Counting): Promise<Usage> {
  const { usage } = metered
  const [own, ...others] = usage.parts
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const input = metered.inputKnown ? {} : await countInput(metered, call, counting)
  const output = metered.outputKnown ? {} : await countOutput(metered, call, counting)
  const quantities = { ...part.quantities, ...input, ...output }
  const promptTokens = metered.inputKnown
    ? part.promptTokens
    : (input.input_tokens ?? input.audio_input_tokens ?? 0)
  const drawn = metered.outputKnown ? [] : drawnImages(metered, call)
  const { asked } = call.plan
  return {
    ...usage,
    // Before the end of a reply upstream only repeats the tier that it was asked for.
    serviceTier: usage.serviceTier === 'auto' ? asked.serviceTier : (usage.serviceTier ?? asked.serviceTier),
    speed: usage.speed ?? asked.speed,
    parts: [{ ...part, quantities, promptTokens }, ...others, ...drawn],
  }
}

async function countInput(metered: Metered, call: CountedCall, counting: Counting): Promise<Quantities> {
  const { request } = call
  if (call.reader === 'transcription') {
    const fileMs = request.audioMs ?? assumedUploadMs(request.lengthBytes)
    const { contextWindow } = call.plan.tokensHeld(metered.usage.modelServed)
    // A file that is heard in pieces may be longer than the window, and nothing limits what is held for it.
    const tokensMax = call.plan.hold.kind === 'unbounded' ? null : contextWindow
    return countHeard(metered, call.modelAsked, fileMs, tokensMax)
  }
  if (request.isForm) return {}
  const held = call.plan.tokensHeld(metered.usage.modelServed)
  // Context that the request only refers to cannot be counted in the request.
  if (call.unseen.context && !call.whole && held.input !== null) return { input_tokens: held.input }
  const { pieces, lengthBytes } = request
  // The bytes of media do not tell how many tokens they are.
  const least = call.unseen.context ? 0 : leastBodyTokens(lengthBytes)
  const tokens =
    pieces === null
      ? roughBodyTokens(lengthBytes)
      : Math.max(least, await counting.tokenCounter.countRequest(SURFACES[call.surface].countedAs, pieces))
  return { input_tokens: Math.min(tokens, held.contextWindow ?? tokens) }
}

async function countOutput(metered: Metered, call: CountedCall, counting: Counting): Promise<Quantities> {
  const { reader, unseen, bytesOut } = call
  if (reader === 'speech') return countSpoken(metered.audio, call.request.speech?.format ?? null)
  if (reader === 'transcription' && isSoldByDuration(call.modelAsked)) return {}
  if (reader === 'images') return { image_output_tokens: unseen.imageTokens() * unseen.images }
  const held = call.plan.tokensHeld(metered.usage.modelServed)
  // An unreadable request may have turned things off, its usage for one, and an unreadable reply tells nothing.
  const isUnreadable = unseen.request || metered.faults.includes('unreadable')
  if (isUnreadable && call.whole && held.output !== null) return { output_tokens: held.output }
  const written = await countWritten(metered, call.surface, counting)
  const reasons = unseen.reasoning || metered.shown.reasons
  const silent =
    reasons && !call.whole ? call.silentMs * counting.outputSpeeds.tokensPerMs(call.modelAsked) : 0
  // The thinking that a reply shows is a summary of the model's, written in the time that counts as silence.
  const used = Math.max(written, Math.ceil(written * answerShare(metered) + silent))
  const tokens = Math.min(used, Math.max(written, held.output ?? Infinity))
  return {
    output_tokens: tokens,
    ...(unseen.media ? { audio_output_tokens: spokenTokens(bytesOut / CHAT_AUDIO_BYTES_PER_MS) } : {}),
  }
}

/** The tokens of the output that was delivered. */
async function countWritten(metered: Metered, surface: Surface, counting: Counting): Promise<number> {
  const { output, outputTokensSeen } = metered
  const allBytes = output.bytes.text + output.bytes.thinking + output.bytes.tool
  if (allBytes === 0) return outputTokensSeen
  const kept = await count(surface, output.texts(), counting)
  // Output that was too long to be kept is taken to have as many tokens per byte as the kept output.
  const counted = output.keptBytes === 0 ? roughBodyTokens(allBytes) : (kept * allBytes) / output.keptBytes
  return Math.max(outputTokensSeen, Math.ceil(counted))
}

/** The share of the delivered bytes that is not thinking. */
function answerShare({ output: { bytes } }: Metered): number {
  const answer = bytes.text + bytes.tool
  return bytes.thinking === 0 ? 1 : answer / (answer + bytes.thinking)
}

/** Images that a tool has begun: they are drawn to the end, and paid for at the model of the tool. */
function drawnImages({ imagesBegun }: Metered, { unseen }: CountedCall): readonly UsagePart[] {
  if (imagesBegun === 0) return []
  const quantities = { image_output_tokens: imagesBegun * unseen.imageTokens() }
  return [{ model: IMAGE_TOOL_MODEL, quantities, promptTokens: 0 }]
}

async function count(surface: Surface, texts: readonly string[], counting: Counting): Promise<number> {
  const { countedAs } = SURFACES[surface]
  return countedAs === 'chat' ? await counting.tokenCounter.countChat(texts) : countMessagesTokens(texts)
}

/** The most calls that a model's speed is taken from, and the most models that are remembered. Beyond either the oldest go. */
const CALLS_MAX = 20
const MODELS_MAX = 500

/** The speed of a model that has completed no call here yet: what the slower reasoning models write in a millisecond. */
const TOKENS_PER_MS_UNKNOWN = 0.05

/** With fewer tokens the time to the first token is most of the time, and a long prompt stretches that time at will. */
const TOKENS_MIN = 16

/** Bounds of a speed: all keys share the speeds that calls have shown, and one key can make its calls show any speed. */
const TOKENS_PER_MS_MIN = 0.02
const TOKENS_PER_MS_MAX = 2

interface Shown {
  readonly tokens: number
  readonly ms: number
}

/** How fast models write, as their last complete calls on this node have shown. */
export class OutputSpeeds {
  readonly #models = new Map<string, Shown[]>()

  /** Notes the speed of a call with one answer. `ms` is without the time in which the client did not read. */
  note(model: string, tokens: number, ms: number): void {
    if (tokens < TOKENS_MIN || ms <= 0) return
    let calls = this.#models.get(model)
    if (calls === undefined) {
      const [oldest] = this.#models.keys()
      if (this.#models.size >= MODELS_MAX && oldest !== undefined) this.#models.delete(oldest)
      calls = []
      this.#models.set(model, calls)
    }
    if (calls.length === CALLS_MAX) calls.shift()
    calls.push({ tokens, ms })
  }

  tokensPerMs(model: string | null): number {
    const calls = model === null ? undefined : this.#models.get(model)
    if (calls === undefined) return TOKENS_PER_MS_UNKNOWN
    const shown =
      calls.reduce((sum, { tokens }) => sum + tokens, 0) / calls.reduce((sum, { ms }) => sum + ms, 0)
    return Math.min(Math.max(shown, TOKENS_PER_MS_MIN), TOKENS_PER_MS_MAX)
  }
}

/** The longest pause between pieces of output that counts as the network's and not the model's. */
const PAUSE_MS_MAX = 1_000

/**
 * Adds up the time in which a reply showed nothing of the answer: before its first visible output, and in gaps of more than
 * a second. Time in which upstream was not read, because the client did not read, is no silence of the model.
 */
export class Silence {
  #visibleBytes = 0
  #lastMs: number
  #silentMs = 0
  #pausedSinceMs: number | null = null
  #pausedMs = 0

  constructor(startedMs: number) {
    this.#lastMs = startedMs
  }

  /** To be called after each chunk, with the count of all bytes that were visible until then. */
  see(visibleBytes: number, nowMs: number): void {
    if (visibleBytes === this.#visibleBytes) return
    this.#silentMs = this.until(nowMs)
    this.#visibleBytes = visibleBytes
    this.#lastMs = nowMs
  }

  /** Upstream is not read from now on. */
  pause(nowMs: number): void {
    this.#pausedSinceMs ??= nowMs
  }

  /** Upstream is read again. */
  resume(nowMs: number): void {
    if (this.#pausedSinceMs === null) return
    const pausedMs = nowMs - this.#pausedSinceMs
    this.#pausedSinceMs = null
    this.#pausedMs += pausedMs
    this.#lastMs += pausedMs
  }

  /** How long upstream was not read. */
  get pausedMs(): number {
    return this.#pausedMs
  }

  /** The silence in all, if the reply ends now. */
  until(nowMs: number): number {
    const gapMs = (this.#pausedSinceMs ?? nowMs) - this.#lastMs
    return this.#silentMs + (this.#visibleBytes === 0 || gapMs > PAUSE_MS_MAX ? gapMs : 0)
  }
}
