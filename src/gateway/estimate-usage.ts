import type { Quantities, Usage, UsagePart } from '../kernel/usage.ts'
import type { Metered } from '../metering/meter.ts'
import {
  countHeard,
  countSpoken,
  fileIn,
  isSoldByDuration,
  PCM_BYTES_PER_MS,
  type SpeechRequest,
  spokenTokens,
} from '../providers/chat/audio.ts'
import { IMAGE_TOOL_MODEL } from '../providers/chat/images.ts'
import type { UnseenWork } from '../providers/request-limits.ts'
import type { CompleteCall, Estimates, Figures, ReplyTimes } from './estimates.ts'
import type { CallPlan } from './pricer.ts'

export interface CountableInput {
  readonly lengthBytes: number
  /** The body is a form: most of it is a file, and none of the file is text. */
  readonly isForm: boolean
  /** The plain bytes of the body; null where they are encoded or were not held. */
  readonly pieces: Buffer | readonly Buffer[] | null
  readonly formType?: string
  readonly speech: SpeechRequest | null
}

/** How the call ended. `left`: its client did not wait for the end. `broken`: upstream did not come to an end. */
export type EndedAs = 'whole' | 'left' | 'broken'

export interface EstimatedCall {
  readonly keyId: string
  readonly plan: Pick<CallPlan, 'tokensHeld' | 'asked' | 'hold' | 'answers' | 'reader' | 'modelAsked'>
  readonly request: CountableInput
  readonly endedAs: EndedAs
  readonly unseen: UnseenWork
  readonly bytesOut: number
  readonly times: ReplyTimes
  /** The reply came, or was to come, as one document: nothing of it was visible before its end. */
  readonly isDocument: boolean
  readonly elapsedMs: number
}

/** Chats stream audio as base64, 4 bytes for 3. */
const CHAT_AUDIO_BYTES_PER_MS = (PCM_BYTES_PER_MS * 4) / 3

/** Replies of events that are longer have brought a part of an image. */
const IMAGE_BYTES_MIN = 1024

export async function estimateUsage(
  metered: Metered,
  call: EstimatedCall,
  estimates: Estimates,
): Promise<Usage> {
  const { usage } = metered
  const [own, ...others] = usage.parts
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const { asked } = call.plan
  // Before the end of a reply upstream only repeats the tier that it was asked for.
  const serviceTier =
    usage.serviceTier === 'auto' ? asked.serviceTier : (usage.serviceTier ?? asked.serviceTier)
  const figures = estimates.figuresFor(call.keyId, call.plan.modelAsked, tierNamed(serviceTier))
  const input = metered.inputKnown ? null : await estimateInput(metered, call, figures, estimates)
  const output = metered.outputKnown ? {} : await estimateOutput(metered, call, figures)
  const drawn = metered.outputKnown ? [] : drawnImages(metered, call)
  const quantities = { ...part.quantities, ...input, ...output }
  const promptTokens = input === null ? part.promptTokens : sum(input)
  return {
    ...usage,
    serviceTier,
    speed: usage.speed ?? asked.speed,
    parts: [{ ...part, quantities, promptTokens }, ...others, ...drawn],
  }
}

function sum({ audio_input_milliseconds: _ms, ...tokens }: Quantities): number {
  return Object.values(tokens).reduce<number>((total, count) => total + count, 0)
}

async function estimateInput(
  { usage, audio }: Metered,
  call: EstimatedCall,
  { inputTokensPerByte, cachedShare }: Figures,
  estimates: Estimates,
): Promise<Quantities> {
  const { request, plan } = call
  const { contextWindow } = plan.tokensHeld(usage.modelServed)
  if (call.plan.reader === 'transcription') {
    // A file that is heard in pieces may be longer than the window, and nothing limits what is held for it.
    const tokensMax = plan.hold.kind === 'unbounded' ? null : contextWindow
    const upload = { file: fileIn(request.formType, piecesOf(request)), bodyBytes: request.lengthBytes }
    return await countHeard(audio, call.plan.modelAsked, upload, tokensMax)
  }
  if (request.isForm) return {}
  const bytes = call.unseen.context ? textBytes(request) : request.lengthBytes
  const continued = call.unseen.continues === null ? 0 : estimates.contextOf(call.unseen.continues)
  const carried = Math.ceil(bytes * inputTokensPerByte) + continued
  const tokens = Math.min(carried, contextWindow ?? carried)
  const cached = Math.floor(tokens * cachedShare)
  return { input_tokens: tokens - cached, ...(cached > 0 ? { cache_read_tokens: cached } : {}) }
}

/** Text has blanks: a longer run without any is an image, audio or a document in base64. */
const MEDIA_RUN = /[A-Za-z0-9+/_-]{1024,}/g
const SEARCHED_BYTES_MAX = 16 * 1024 * 1024

/** The bytes of a request without the media that it carries: their size says nothing about their tokens. */
function textBytes(request: CountableInput): number {
  let [searched, media] = [0, 0]
  for (const piece of piecesOf(request)) {
    if (searched + piece.length > SEARCHED_BYTES_MAX) break
    searched += piece.length
    for (const [run] of piece.toString('latin1').matchAll(MEDIA_RUN)) media += run.length
  }
  return searched - media
}

function piecesOf({ pieces }: CountableInput): readonly Buffer[] {
  return Buffer.isBuffer(pieces) ? [pieces] : (pieces ?? [])
}

async function estimateOutput(metered: Metered, call: EstimatedCall, figures: Figures): Promise<Quantities> {
  const { unseen, plan, endedAs } = call
  const { reader } = plan
  if (reader === 'speech') return await countSpoken(metered.audio, call.request.speech?.format ?? null)
  if (reader === 'transcription' && isSoldByDuration(call.plan.modelAsked)) return {}
  if (reader === 'images') return { image_output_tokens: unseen.imageTokens() * imagesMade(call) }
  const held = plan.tokensHeld(metered.usage.modelServed)
  // An unreadable request may have turned things off, its usage for one, and an unreadable reply proves nothing.
  const isUnreadable = unseen.request || metered.faults.includes('unreadable')
  if (isUnreadable && endedAs === 'whole' && held.output !== null) return { output_tokens: held.output }
  const { text, tool, thinking } = metered.output
  const { outputTokensPerByte, outputTokensPerMs } = figures
  const seen = Math.max(metered.outputTokensSeen, (text + tool + thinking) * outputTokensPerByte)
  // The thinking that a reply shows is a summary of the model's, written in the time that counts as silence.
  const worked =
    (text + tool) * outputTokensPerByte + workingMs(metered, call) * outputTokensPerMs * plan.answers
  const tokens = Math.ceil(Math.max(seen, worked))
  const audioMs = unseen.media ? call.bytesOut / CHAT_AUDIO_BYTES_PER_MS : 0
  return {
    output_tokens: Math.max(metered.outputTokensSeen, Math.min(tokens, held.output ?? tokens)),
    ...(audioMs > 0 ? { audio_output_tokens: spokenTokens(audioMs) } : {}),
  }
}

/** How long the model has worked out of sight. A broken call is charged for nothing but what it delivered. */
function workingMs({ shown }: Metered, call: EstimatedCall): number {
  if (call.endedAs === 'broken') return 0
  if (call.isDocument) return call.endedAs === 'left' ? call.elapsedMs : 0
  return call.unseen.reasoning || shown.reasons ? call.times.silentMs : 0
}

function imagesMade({ endedAs, isDocument, unseen, bytesOut }: EstimatedCall): number {
  if (endedAs !== 'broken' || isDocument) return unseen.images
  return bytesOut > IMAGE_BYTES_MIN ? 1 : 0
}

/** Images that a tool has begun: they are drawn to the end, and paid for at the model of the tool. */
function drawnImages({ imagesBegun }: Metered, { unseen }: EstimatedCall): readonly UsagePart[] {
  if (imagesBegun === 0) return []
  const quantities = { image_output_tokens: imagesBegun * unseen.imageTokens() }
  return [{ model: IMAGE_TOOL_MODEL, quantities, promptTokens: 0 }]
}

function tierNamed(serviceTier: string | null): string {
  return serviceTier === null || /^(?:auto|default|standard)$/.test(serviceTier) ? '' : serviceTier
}

export function learnFrom(
  metered: Metered,
  call: Omit<EstimatedCall, 'bytesOut' | 'endedAs'>,
  estimates: Estimates,
): void {
  const { usage, output, objectId } = metered
  const [own] = usage.parts
  if (own === undefined || !metered.inputKnown || !metered.outputKnown || usage.suspect) return
  const { quantities, promptTokens } = own
  const outputTokens = quantities.output_tokens ?? 0
  if (objectId !== null) estimates.noteResponse(objectId, promptTokens + outputTokens)
  if (call.plan.modelAsked === null) return
  const reasons = call.unseen.reasoning || metered.shown.reasons
  const complete: CompleteCall = {
    keyId: call.keyId,
    model: call.plan.modelAsked,
    tier: tierNamed(usage.serviceTier),
    outputTokens,
    visibleTokens: reasons ? visibleTokens(outputTokens, metered.reasoningTokens) : outputTokens,
    visibleBytes: output.text + output.tool + output.thinking,
    generatedMs: call.plan.answers === 1 ? (call.isDocument ? call.elapsedMs : call.times.generatedMs) : null,
    inputTokens: promptTokens,
    cachedTokens: (quantities.cache_read_tokens ?? 0) + (quantities.audio_cache_read_tokens ?? 0),
    requestBytes: call.unseen.context || call.request.isForm ? null : call.request.lengthBytes,
  }
  estimates.learn(complete)
}

function visibleTokens(outputTokens: number, reasoningTokens: number | null): number | null {
  return reasoningTokens === null ? null : Math.max(0, outputTokens - reasoningTokens)
}
