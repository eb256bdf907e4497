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
import type { Surface } from '../providers/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import type { OutputSpeeds } from './output-speed.ts'
import type { BillPlan } from './pricer.ts'

/** The request as far as its input can be counted: its bytes where they are at hand and plain, and their number. */
export interface CountableRequest {
  /** As they lie in memory: joining those of a large body takes longer than a call may keep others waiting. */
  readonly pieces: Buffer | readonly Buffer[] | null
  readonly lengthBytes: number
  /** A form: most of it is a file, and none of that is text. */
  readonly isForm: boolean
  /** How long the file of a transcription is, where there is one. */
  readonly audioMs: number | null
  /** What speech is to be made of. */
  readonly speech: SpeechRequest | null
}

/** What counting has to know of a call. */
export interface CountedCall {
  readonly surface: Surface
  readonly reader: UsageReader | null
  readonly plan: Pick<BillPlan, 'tokensHeld' | 'asked'>
  readonly modelAsked: string | null
  readonly request: CountableRequest
  /** Upstream answered to the end, and did not say what that took. */
  readonly whole: boolean
  readonly unseen: UnseenWork
  /** Of the reply, as far as it was given on. */
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
 * Fills in what upstream did not say: input is counted in the request, output in what was delivered, and output that
 * upstream had already spoken of counts at least. What can be counted in neither is taken from the hold.
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
    // Before its end upstream says of the tier no more than what it was asked for.
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
    return countHeard(metered, call.modelAsked, fileMs, contextWindow)
  }
  if (request.isForm) return {}
  const held = call.plan.tokensHeld(metered.usage.modelServed)
  // What the request only refers to cannot be counted in it.
  if (call.unseen.context && !call.whole && held.input !== null) return { input_tokens: held.input }
  const { pieces, lengthBytes } = request
  // Of media the bytes say nothing.
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
  // Of a request that could not be read nobody knows what it turned off, the usage for one.
  if (unseen.request && call.whole && held.output !== null) return { output_tokens: held.output }
  const written = await countWritten(metered, call.surface, counting)
  const reasons = unseen.reasoning || metered.shown.reasons
  const silent =
    reasons && !call.whole ? call.silentMs * counting.outputSpeeds.tokensPerMs(call.modelAsked) : 0
  const tokens = Math.min(Math.ceil(written + silent), Math.max(written, held.output ?? Infinity))
  return {
    output_tokens: tokens,
    ...(unseen.media ? { audio_output_tokens: spokenTokens(bytesOut / CHAT_AUDIO_BYTES_PER_MS) } : {}),
  }
}

/** The tokens of what was delivered. */
async function countWritten(metered: Metered, surface: Surface, counting: Counting): Promise<number> {
  const { output, outputTokensSeen } = metered
  const allBytes = output.bytes.text + output.bytes.thinking + output.bytes.tool
  if (allBytes === 0) return outputTokensSeen
  const kept = await count(surface, output.texts(), counting)
  // What was too long to be kept is taken to be like what was.
  const counted = output.keptBytes === 0 ? roughBodyTokens(allBytes) : (kept * allBytes) / output.keptBytes
  return Math.max(outputTokensSeen, Math.ceil(counted))
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
