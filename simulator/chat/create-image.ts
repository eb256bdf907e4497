import type { Call } from '../call.ts'
import { imageMakers, imageQualities, imageTokens } from '../images.ts'
import { asArray, asText, isIntegerIn, type JsonObject, mergeJson } from '../json.ts'
import type { Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { countTokens } from '../tokens.ts'
import { missing, parseChatBody, readBoolean, readChoices, requireModel } from './chat-body.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'
import { isForm, parseForm } from './form-body.ts'

const modelDefault = 'gpt-image-2'
const imagesMax = 10
const partialImagesMax = 3
const tokensPerPartialImage = 100
const tokensPerInputImage = 323
const sideMax = 4_096

interface ImageRequest {
  readonly model: Model
  readonly prompt: string
  readonly images: number
  readonly inputImages: number
  readonly isStream: boolean
  readonly partialImages: number
  readonly width: number
  readonly height: number
  readonly quality: string
  readonly format: string
  readonly background: string
}

/** POST /v1/images/generations */
export function createImage(call: Call): Reply {
  return answer(call, readRequest(parseChatBody(call), 'v1/images/generations', 0), 'image_generation')
}

/** POST /v1/images/edits, as a form or as JSON. */
export function editImage(call: Call): Reply {
  const form = isForm(call) ? parseForm(call) : undefined
  const body = form === undefined ? parseChatBody(call) : numbersOf(form.fields)
  const inputImages =
    form === undefined
      ? asArray(body['images']).length
      : form.files.filter((file) => /^image(\[\d*\])?$/.test(file.name)).length
  if (inputImages === 0) throw missing(form === undefined ? 'images' : 'image')
  return answer(call, readRequest(body, 'v1/images/edits', inputImages), 'image_edit')
}

/** Fields of a form are text; fields that are numbers and booleans in JSON are read as such. */
function numbersOf(fields: JsonObject): JsonObject {
  const read = ([name, value]: [string, unknown]): [string, unknown] => {
    if (name === 'stream') return [name, value === 'true']
    return [name, name === 'n' || name === 'partial_images' ? Number(value) : value]
  }
  return Object.fromEntries(Object.entries(fields).map(read))
}

function readRequest(body: JsonObject, endpoint: string, inputImages: number): ImageRequest {
  const prompt = asText(body['prompt'])
  if (prompt === '') throw missing('prompt')
  const [, width = 1_024, height = 1_024] = readOf(body, 'size', /^(\d+)x(\d+)$|^auto$/).map((side) =>
    side === undefined ? undefined : Number(side),
  )
  if (![width, height].every((side) => isIntegerIn(side, 1, sideMax))) {
    throw refuse('size', `the simulator draws up to ${sideMax}x${sideMax}`)
  }
  const partialImages = body['partial_images'] ?? 0
  if (!isIntegerIn(partialImages, 0, partialImagesMax)) {
    throw refuse('partial_images', `expected 0 to ${partialImagesMax}`)
  }
  const [quality = 'auto'] = readOf(body, 'quality', new RegExp(`^(?:${imageQualities.join('|')}|auto)$`))
  const [format = 'png'] = readOf(
    body,
    'output_format',
    new RegExp(`^(?:${[...imageMakers.keys()].join('|')})$`),
  )
  const [background = 'auto'] = readOf(body, 'background', /^(?:transparent|opaque|auto)$/)
  return {
    model: requireModel(body['model'] ?? modelDefault, endpoint, ['image']),
    prompt,
    images: readChoices(body['n'], imagesMax),
    inputImages,
    isStream: readBoolean(body['stream'], 'stream'),
    partialImages,
    width,
    height,
    quality: quality === 'auto' ? 'medium' : quality,
    format,
    background: background === 'auto' ? 'opaque' : background,
  }
}

/** The groups that a pattern finds in a member; none for an absent member. */
function readOf(body: JsonObject, name: string, pattern: RegExp): (string | undefined)[] {
  const value = body[name]
  if (value === undefined || value === null) return []
  const found = pattern.exec(asText(value))
  if (found === null) throw refuse(name, `${JSON.stringify(value)} is not what the simulator draws`)
  return [...found]
}

function refuse(param: string, reason: string): Refusal {
  return new Refusal(400, `Invalid '${param}': ${reason}.`, { param, code: 'invalid_value' })
}

function answer(call: Call, request: ImageRequest, event: 'image_generation' | 'image_edit'): Reply {
  const { model, quality, background, width, height } = request
  const created = Math.floor(call.identity.now().getTime() / 1000)
  const facts = { size: `${width}x${height}`, quality, background, output_format: request.format }
  const perImage = imageTokens(quality, width, height)
  const headers = chatHeaders(call.identity, perImage * request.images)
  const draw = (nth: number): string =>
    (imageMakers.get(request.format)?.(`${request.prompt}/${nth}`) ?? Buffer.alloc(0)).toString('base64')
  if (request.isStream) {
    const partialTokens = Math.floor(perImage / (request.partialImages + 1))
    const frames = function* (): Generator<Frame> {
      for (let nth = 0; nth < request.images; nth += 1) {
        const image = { b64_json: draw(nth), created_at: created, ...facts }
        for (let part = 0; part < request.partialImages; part += 1) {
          const type = `${event}.partial_image`
          yield namedFrame(type, { type, ...image, partial_image_index: part }, partialTokens, true)
        }
        const type = `${event}.completed`
        // The prompt is read once: only the first of several images counts it.
        const usage = usageOf(
          call,
          request,
          nth === 0,
          perImage + request.partialImages * tokensPerPartialImage,
        )
        yield namedFrame(type, { type, ...image, ...usage }, partialTokens, true)
      }
    }
    return eventsReply(frames(), chatErrorFrame, model.pace, headers)
  }
  const tokens = perImage * request.images
  const body = {
    created,
    ...facts,
    data: Array.from({ length: request.images }, (_, nth) => ({ b64_json: draw(nth) })),
    ...usageOf(call, request, true, tokens),
  }
  return jsonReply(200, body, { headers, pace: model.pace, tokens })
}

function usageOf(call: Call, request: ImageRequest, countsInput: boolean, output: number): JsonObject {
  if (call.behaviours.noUsage === true) return {}
  const text = countsInput ? countTokens(request.prompt) : 0
  const image = countsInput ? request.inputImages * tokensPerInputImage : 0
  const usage = {
    input_tokens: text + image,
    input_tokens_details: { text_tokens: text, image_tokens: image },
    output_tokens: output,
    output_tokens_details: { text_tokens: 0, image_tokens: output },
    total_tokens: text + image + output,
  }
  return { usage: mergeJson(usage, call.behaviours.usage ?? {}) }
}
