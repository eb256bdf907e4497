import {
  IMAGE_TOOL,
  type Quantities,
  UNIT_PRICES,
  type Unit,
  type Usage,
  type UsagePart,
} from '../kernel/usage.ts'
import { deliveredBytes, type Metered } from '../metering/meter.ts'
import { tokenLimits } from '../pricing/hold.ts'
import { tierOf } from '../pricing/modifiers.ts'
import { findPriceFor, isPricedPer } from '../pricing/price-book.ts'
import {
  countInputAudio,
  countOutputAudio,
  fileIn,
  outputAudioTokens,
  PCM_BYTES_PER_MS,
} from '../providers/chat/audio.ts'
import { tokensInBytes } from '../providers/reading.ts'
import { NOT_READ, type RequestFacts } from '../providers/request-facts.ts'
import type { CallPlan } from './call-plan.ts'
import type { Evidence } from './evidence.ts'

/** Tokens per millisecond of invisible work, by tier. Fixed, so that the same evidence gives the same bill everywhere. */
const TOKENS_PER_MS = {
  standard: 0.05,
  batch: 0.05,
  flex: 0.05,
  priority: 0.2,
  fast: 0.2,
  ultrafast: 0.5,
} as const

/** What a request carried, from which input is estimated that upstream does not state. */
export interface CountableInput {
  readonly lengthBytes: number
  /** Content type of a multipart form, most of which is a file and not text; null for any other body. */
  readonly formType: string | null
  /** The plain bytes of the body; empty if it was encoded or not buffered. */
  readonly pieces: readonly Buffer[]
  readonly facts: RequestFacts
}

export const NOTHING_COUNTABLE: CountableInput = {
  lengthBytes: 0,
  formType: null,
  pieces: [],
  facts: NOT_READ,
}

/** The ending that the bill follows: a broken reply may be the fault of its client. */
export type EndedAs = 'whole' | 'left' | 'broken'

interface EstimatedCall extends Pick<Evidence, 'delivered' | 'times'> {
  readonly plan: CallPlan
  readonly request: CountableInput
  /** How much of its input the key has read from the cache lately. */
  readonly cachedShare: number
  readonly endedAs: EndedAs
  /** Whether the reply is one JSON document, of which the client sees nothing before its end. */
  readonly isDocument: boolean
}

/** The usage that was stated, with an estimate of the side that was not. */
export function completeUsage(
  metered: Metered,
  input: Quantities | null,
  output: Quantities | null,
  others: readonly UsagePart[] = [],
): Usage {
  const { usage } = metered
  const own = usage.parts.find(({ model }) => model === null)
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const known = { inputKnown: input === null, outputKnown: output === null }
  const quantities = { ...unitsOfKnownSides(part.quantities, known), ...input, ...output }
  const promptTokens = input === null ? part.promptTokens : sum(input)
  const stated = usage.parts.filter((each) => each !== own)
  return { ...usage, parts: [{ ...part, quantities, promptTokens }, ...stated, ...others] }
}

/** Estimates the usage that a finished object, or a line of a batch, does not state: nothing of its work is visible. */
export function estimateObject(metered: Metered, requestBytes: number, cachedShare: number): Usage {
  const { inputKnown, outputKnown, outputTokensSeen, output } = metered
  const tokens = Math.max(outputTokensSeen, tokensInBytes(deliveredBytes(output)))
  const input = inputKnown ? null : splitCached(tokensInBytes(requestBytes), cachedShare)
  return { ...completeUsage(metered, input, outputKnown ? null : { output_tokens: tokens }), suspect: true }
}

export async function estimateUsage(metered: Metered, call: EstimatedCall): Promise<Usage> {
  const { usage, inputKnown, outputKnown } = metered
  const { plan } = call
  // Before the end of a reply, upstream only echoes the requested tier.
  const stated = usage.serviceTier === 'auto' ? null : usage.serviceTier
  const circumstances = {
    serviceTier: stated ?? plan.serviceTier,
    speed: usage.speed ?? plan.speed,
  }
  const { tier } = tierOf(plan.surface, { ...circumstances, batch: plan.batch })
  const input = inputKnown ? null : await estimateInput(metered, call)
  const output = outputKnown ? null : await estimateOutput(metered, call, TOKENS_PER_MS[tier])
  const images = outputKnown ? [] : imageParts(metered, call)
  return { ...completeUsage(metered, input, output, images), ...circumstances }
}

/** The known units. If input or output is unknown, all its units are estimated, except tool calls. */
function unitsOfKnownSides(
  quantities: Quantities,
  { inputKnown, outputKnown }: Pick<Metered, 'inputKnown' | 'outputKnown'>,
): Quantities {
  const isKnown = (unit: string): boolean => {
    const { side } = UNIT_PRICES[unit as Unit]
    return side === 'tool' || (side === 'output' ? outputKnown : inputKnown)
  }
  return Object.fromEntries(Object.entries(quantities).filter(([unit]) => isKnown(unit)))
}

function sum({ audio_input_milliseconds: _ms, ...tokens }: Quantities): number {
  return Object.values(tokens).reduce<number>((total, count) => total + count, 0)
}

async function estimateInput({ usage, audio }: Metered, call: EstimatedCall): Promise<Quantities> {
  const { request, plan, cachedShare } = call
  const { input: tokensMax } = tokenLimits(plan, usage.modelServed, plan.version)
  if (plan.reader === 'transcription') {
    // A file transcribed in chunks may exceed the context window, and its hold is unbounded.
    const audioTokensMax = plan.hold.kind === 'unbounded' ? null : tokensMax
    const upload = {
      file: fileIn(request.formType ?? undefined, request.pieces),
      bodyBytes: request.lengthBytes,
    }
    return await countInputAudio(audio, isTimed(plan), upload, audioTokensMax)
  }
  if (request.formType !== null) return {}
  const carried = tokensInBytes(plan.hidden.refersElsewhere ? textBytes(request) : request.lengthBytes)
  return splitCached(Math.min(carried, tokensMax ?? carried), cachedShare)
}

function splitCached(tokens: number, share: number): Quantities {
  const cached = Math.floor(tokens * share)
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
  return request.pieces.length === 0 ? request.lengthBytes : searched - media
}

/** Chats stream audio as base64, 4 bytes for 3. */
const CHAT_AUDIO_BYTES_PER_MS = (PCM_BYTES_PER_MS * 4) / 3

/** An event stream longer than this has delivered part of an image. */
const IMAGE_BYTES_MIN = 1024

async function estimateOutput(
  metered: Metered,
  call: EstimatedCall,
  tokensPerMs: number,
): Promise<Quantities> {
  const { plan, endedAs, request, delivered } = call
  const { hidden, answers, reader } = plan
  if (reader === 'speech')
    return await countOutputAudio(metered.audio, delivered, request.facts.body['response_format'])
  if (reader === 'transcription' && isTimed(plan)) return {}
  if (reader === 'images') return { image_output_tokens: hidden.imageTokens * imagesMade(call) }
  const most = tokenLimits(plan, metered.usage.modelServed, plan.version).output
  // An unreadable request may have turned usage reporting off, and an unreadable reply proves nothing.
  const isUnreadable = hidden.unreadable || metered.fault === 'unreadable'
  if (isUnreadable && endedAs === 'whole' && most !== null) return { output_tokens: most }
  const { thinking } = metered.output
  const visible = deliveredBytes(metered.output)
  // Visible thinking is a summary. The time of the real thinking is part of the silence, and all of a document's time is.
  const shownAtOnce = call.isDocument ? visible : thinking
  const worked = (visible - shownAtOnce) / 4 + workingMs(metered, call) * tokensPerMs * answers
  const tokens = Math.ceil(Math.max(visible / 4, worked))
  const audioMs = hidden.makesMedia ? delivered / CHAT_AUDIO_BYTES_PER_MS : 0
  return {
    output_tokens: Math.max(metered.outputTokensSeen, Math.min(tokens, most ?? tokens)),
    ...(audioMs > 0 ? { audio_output_tokens: outputAudioTokens(audioMs) } : {}),
  }
}

/** Whether the model is priced by the length of audio. */
function isTimed({ version, model, endpoint }: CallPlan): boolean {
  return isPricedPer('audio_input_milliseconds', findPriceFor(version, model), endpoint)
}

/** How long the model worked invisibly. A broken call is charged only for what was delivered. */
function workingMs({ shown }: Metered, call: EstimatedCall): number {
  if (call.endedAs === 'broken') return 0
  if (call.isDocument) return call.endedAs === 'left' ? call.times.elapsedMs : 0
  return call.plan.hidden.mayReason || shown.reasons ? call.times.silentMs : 0
}

function imagesMade({ endedAs, isDocument, plan, delivered }: EstimatedCall): number {
  if (endedAs !== 'broken' || isDocument) return plan.answers
  return delivered > IMAGE_BYTES_MIN ? 1 : 0
}

/** The images that a tool has begun. Upstream completes them, and charges the tool's model. */
function imageParts({ imagesBegun }: Metered, { plan }: EstimatedCall): readonly UsagePart[] {
  if (imagesBegun === 0) return []
  const quantities = { image_output_tokens: imagesBegun * plan.hidden.imageTokens }
  return [{ model: IMAGE_TOOL, quantities, promptTokens: 0 }]
}
