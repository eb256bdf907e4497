import type { Call } from '../call.ts'
import { asText, isIntegerIn, type JsonObject } from '../json.ts'
import { eventFrame, type Frame, jsonReply, type Reply, streamReply } from '../reply.ts'
import { countTokens } from '../text.ts'
import { chatErrorFrame } from './chat-wire.ts'
import { invalid, missing, parseChatBody, readChoices, reported, requireModel } from './read-fields.ts'

const imagesMax = 10
const sideMax = 4_096
const tokensPerPartialImage = 100
/** Output tokens of 1024x1024 pixels. */
const tokensByQuality: Readonly<Record<string, number>> = { low: 272, medium: 1_056, high: 4_160 }
/** A PNG of one white pixel. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAGn4YzAAAAABJRU5ErkJggg=='

/** POST /v1/images/generations, whole or streamed with partial images. */
export function createImage(call: Call): Reply {
  const body = parseChatBody(call)
  const model = requireModel(body['model'] ?? 'gpt-image-2', 'v1/images/generations', 'image')
  const prompt = asText(body['prompt'])
  if (prompt === '') throw missing('prompt')
  const [, width = 1_024, height = 1_024] = (/^(\d+)x(\d+)$/.exec(asText(body['size'])) ?? []).map(Number)
  if (![width, height].every((side) => isIntegerIn(side, 1, sideMax))) {
    throw invalid('size', `at most ${sideMax}x${sideMax}`)
  }
  const asked = asText(body['quality'])
  const quality = tokensByQuality[asked] === undefined ? 'medium' : asked
  const perImage = Math.ceil(((tokensByQuality[quality] ?? 0) * width * height) / (1_024 * 1_024))
  const count = readChoices(body['n'], imagesMax)
  const created = Math.floor(call.identity.now().getTime() / 1000)
  const facts = { size: `${width}x${height}`, quality, background: 'opaque', output_format: 'png' }
  const { pace } = model
  if (body['stream'] === true) {
    const partial = isIntegerIn(body['partial_images'], 0, 3) ? body['partial_images'] : 0
    const image = { b64_json: picture, created_at: created, ...facts }
    return streamReply(streamImages(call, prompt, { image, count, partial, perImage }), chatErrorFrame, pace)
  }
  const tokens = perImage * count
  const data = Array.from({ length: count }, () => ({ b64_json: picture }))
  return jsonReply({ created, ...facts, data, ...usageOf(call, prompt, tokens) }, { pace, tokens })
}

function* streamImages(
  call: Call,
  prompt: string,
  plan: { image: JsonObject; count: number; partial: number; perImage: number },
): Generator<Frame> {
  const { image, count, partial, perImage } = plan
  const paced = Math.floor(perImage / (partial + 1))
  for (let nth = 0; nth < count; nth += 1) {
    for (let part = 0; part < partial; part += 1) {
      const type = 'image_generation.partial_image'
      yield eventFrame(type, { type, ...image, partial_image_index: part }, paced, true)
    }
    const type = 'image_generation.completed'
    // The prompt is read once: only the first of several images counts it.
    const usage = usageOf(call, nth === 0 ? prompt : '', perImage + partial * tokensPerPartialImage)
    yield eventFrame(type, { type, ...image, ...usage }, paced, true)
  }
}

function usageOf(call: Call, prompt: string, output: number): JsonObject {
  const input = countTokens(prompt)
  const usage = {
    input_tokens: input,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { text_tokens: 0, image_tokens: output },
    total_tokens: input + output,
  }
  return reported(usage, call.behaviours)
}
