import type { Quantities, Usage, UsagePart } from '../kernel/usage.ts'
import type { Metered } from '../metering/meter.ts'
import { countMessagesTokens, type TokenCounter } from '../metering/token-counter.ts'
import { audioTokensIn, isSoldByDuration, millisecondsIn } from '../providers/audio-estimate.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { requestTexts } from '../providers/request-text.ts'
import type { Surface } from '../providers/surface.ts'

/** The request as far as its input can be counted: its bytes where they are at hand and plain, and their number. */
export interface CountableRequest {
  readonly bytes: Buffer | null
  readonly lengthBytes: number
  /** A form: most of it is a file, and none of that is text. */
  readonly isForm: boolean
}

/** What counting has to know of a call. */
export interface CountedCall {
  readonly surface: Surface
  readonly reader: UsageReader | null
  readonly modelAsked: string | null
  readonly request: CountableRequest
  /** No model reads more than its context window. */
  readonly inputTokensMax: number | null
  /** Of the reply, as far as it was given on. */
  readonly bytesOut: number
}

/** Where only the size of a body is known: JSON around English text has about this many bytes to a token. */
const BODY_BYTES_PER_TOKEN = 4

/**
 * Fills in what upstream did not say: input is counted in the request, output in what was delivered, and output that
 * upstream had already spoken of counts at least.
 */
export async function estimateUsage(
  metered: Metered,
  call: CountedCall,
  counter: TokenCounter,
): Promise<Usage> {
  const { usage } = metered
  const [own, ...others] = usage.parts
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const input = metered.inputKnown ? {} : await countInput(call, counter)
  const output = metered.outputKnown ? {} : await countOutput(metered, call, counter)
  const quantities = { ...part.quantities, ...input, ...output }
  const promptTokens = metered.inputKnown
    ? part.promptTokens
    : (input.input_tokens ?? input.audio_input_tokens ?? 0)
  return { ...usage, parts: [{ ...part, quantities, promptTokens }, ...others] }
}

async function countInput(call: CountedCall, counter: TokenCounter): Promise<Quantities> {
  const { request } = call
  if (request.isForm) {
    if (call.reader !== 'transcription') return {}
    const milliseconds = millisecondsIn(request.lengthBytes)
    if (isSoldByDuration(call.modelAsked)) return { audio_input_milliseconds: milliseconds }
    return { audio_input_tokens: audioTokensIn(milliseconds) }
  }
  const texts = request.bytes === null ? null : requestTexts(request.bytes)
  const tokens =
    texts === null
      ? Math.ceil(request.lengthBytes / BODY_BYTES_PER_TOKEN)
      : await count(call.surface, texts, counter)
  return { input_tokens: Math.min(tokens, call.inputTokensMax ?? tokens) }
}

async function countOutput(metered: Metered, call: CountedCall, counter: TokenCounter): Promise<Quantities> {
  if (call.reader === 'speech') return { audio_output_tokens: audioTokensIn(millisecondsIn(call.bytesOut)) }
  const { output, outputTokensSeen } = metered
  const allBytes = output.bytes.text + output.bytes.thinking + output.bytes.tool
  if (allBytes === 0) return { output_tokens: outputTokensSeen }
  const kept = await count(call.surface, output.texts(), counter)
  // What was too long to be kept is taken to be like what was.
  const counted =
    output.keptBytes === 0 ? allBytes / BODY_BYTES_PER_TOKEN : (kept * allBytes) / output.keptBytes
  return { output_tokens: Math.max(outputTokensSeen, Math.ceil(counted)) }
}

async function count(surface: Surface, texts: readonly string[], counter: TokenCounter): Promise<number> {
  if (surface === 'chat') return await counter.countChat(texts)
  return countMessagesTokens(texts.reduce((sum, text) => sum + text.length, 0))
}
