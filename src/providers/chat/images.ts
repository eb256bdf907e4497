import { IMAGE_TOOL, type UsagePart } from '../../kernel/usage.ts'
import { isObject, type JsonObject } from '../../metering/json-shape.ts'
import { asList, asName, asObject, type Counts, quantitiesOf } from '../reading.ts'
import type { RequestFacts } from '../request-facts.ts'
import { partOf, type ReportedTokens, readTokens } from './tokens.ts'

/** Output tokens of one image by quality and shape, as the price list counts it. */
const IMAGE_TOKENS: Readonly<Record<string, readonly [square: number, oblong: number]>> = {
  low: [272, 408],
  medium: [1_056, 1_584],
  high: [4_160, 6_240],
}

const SQUARE_PIXELS = 1_024 * 1_024
const OBLONG_PIXELS = 1_024 * 1_536

/** Output tokens of one image. For an unknown size or quality, those of the most expensive usual one. */
export function imageTokens(facts: RequestFacts): number {
  return tokensOfImage(wordOf(facts, 'quality'), wordOf(facts, 'size'))
}

function tokensOfImage(quality: string, size: string): number {
  const [square, oblong] = IMAGE_TOKENS[quality] ?? [4_160, 6_240]
  const [, width, height] = /^(\d{2,5})x(\d{2,5})$/.exec(size) ?? []
  if (width === undefined || height === undefined) return oblong
  const pixels = Number(width) * Number(height)
  return width === height
    ? Math.ceil(square * Math.max(1, pixels / SQUARE_PIXELS))
    : Math.ceil(oblong * Math.max(1, pixels / OBLONG_PIXELS))
}

function wordOf({ body, tools }: RequestFacts, name: 'size' | 'quality'): string {
  const drawing = tools?.find(({ type }) => String(type).startsWith('image_generation'))
  const word = body[name] ?? drawing?.[name]
  return typeof word === 'string' ? word : ''
}

/** The usage of the model that wrote a vector image, which is not the model that renders it. */
export function svgParts(value: unknown, counts: Counts): UsagePart[] {
  if (!isObject(value)) return []
  return [partOf(asName(value['model']) ?? IMAGE_TOOL, readTokens(value, counts))]
}

/** Tokens of an image model. Output without details counts as images. */
export function readImageTokens(usage: JsonObject, counts: Counts): ReportedTokens {
  return readTokens(usage, counts, { output: 'image_output_tokens' })
}

/** The usage of image tools, in addition to the model's own: from `tool_usage`, else from the images. */
export function imageToolParts(response: JsonObject, counts: Counts): UsagePart[] {
  const usage = asObject(response['tool_usage'])['image_gen']
  const tool = imageTool(response)
  const tokens = isObject(usage) ? readImageTokens(usage, counts) : drawnTokens(response, tool, counts)
  const part = partOf(asName(tool['model']) ?? IMAGE_TOOL, tokens)
  return Object.keys(part.quantities).length > 0 ? [part] : []
}

/** The response repeats the request's tools, including a model that the request named. */
function imageTool(response: JsonObject): JsonObject {
  return asObject(asList(response['tools']).find((value) => asObject(value)['type'] === 'image_generation'))
}

/** Tokens of images without stated usage, by size and quality. A vector image states its own. */
function drawnTokens(response: JsonObject, tool: JsonObject, counts: Counts): ReportedTokens {
  let total = 0
  for (const value of asList(response['output'])) {
    const item = asObject(value)
    const isDrawn = item['type'] === 'image_generation_call' && item['status'] !== 'failed'
    if (!isDrawn || isObject(item['svg_usage'])) continue
    const wordOf = (name: string) => asName(item[name]) ?? asName(tool[name]) ?? ''
    total += tokensOfImage(wordOf('quality'), wordOf('size'))
  }
  if (total > 0) counts.markSuspect()
  return { input: null, output: { total, quantities: quantitiesOf({ image_output_tokens: total }) } }
}
