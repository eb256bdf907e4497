import type { Usage, UsagePart } from '../kernel/usage.ts'
import type { Metered } from '../metering/meter.ts'
import { countMessagesTokens, type TokenCounter } from '../metering/token-counter.ts'
import { requestTexts } from '../providers/request-text.ts'
import type { Surface } from '../providers/surface.ts'

/** The request as far as its input can be counted: its bytes where they are at hand and plain, and their number. */
export interface CountableRequest {
  readonly bytes: Buffer | null
  readonly lengthBytes: number
}

/** Where only the size of a body is known: JSON around English text has about this many bytes to a token. */
const BODY_BYTES_PER_TOKEN = 4

/**
 * Fills in what upstream did not say: input is counted in the request, output in what was delivered, and output that
 * upstream had already spoken of counts at least.
 */
export async function estimateUsage(
  metered: Metered,
  surface: Surface,
  request: CountableRequest,
  counter: TokenCounter,
): Promise<Usage> {
  const { usage } = metered
  const [own, ...others] = usage.parts
  const part: UsagePart = own ?? { model: null, quantities: {}, promptTokens: 0 }
  const quantities: Record<string, number> = { ...part.quantities }
  let { promptTokens } = part
  if (!metered.inputKnown) {
    const input = await countInput(surface, request, counter)
    quantities['input_tokens'] = input
    promptTokens = input
  }
  if (!metered.outputKnown) {
    const output = await countOutput(surface, metered, counter)
    quantities['output_tokens'] = Math.max(metered.outputTokensSeen, output)
  }
  return { ...usage, parts: [{ ...part, quantities, promptTokens }, ...others] }
}

async function countInput(
  surface: Surface,
  request: CountableRequest,
  counter: TokenCounter,
): Promise<number> {
  const texts = request.bytes === null ? null : requestTexts(request.bytes)
  if (texts === null) return Math.ceil(request.lengthBytes / BODY_BYTES_PER_TOKEN)
  return await count(surface, texts, counter)
}

async function countOutput(surface: Surface, { output }: Metered, counter: TokenCounter): Promise<number> {
  const allBytes = output.bytes.text + output.bytes.thinking + output.bytes.tool
  if (allBytes === 0) return 0
  const kept = await count(surface, output.texts(), counter)
  // What was too long to be kept is taken to be like what was.
  return output.keptBytes === 0
    ? Math.ceil(allBytes / BODY_BYTES_PER_TOKEN)
    : Math.ceil((kept * allBytes) / output.keptBytes)
}

async function count(surface: Surface, texts: readonly string[], counter: TokenCounter): Promise<number> {
  if (surface === 'chat') return await counter.countChat(texts)
  return countMessagesTokens(texts.reduce((sum, text) => sum + text.length, 0))
}
