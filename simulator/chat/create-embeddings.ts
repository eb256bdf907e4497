import type { Call } from '../call.ts'
import { isIntegerIn } from '../json.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { countTokens, seededChance, seedFromText } from '../text.ts'
import { invalid, missing, parseChatBody, reported, requireModel } from './read-fields.ts'

/** POST /v1/embeddings */
export function createEmbeddings(call: Call): Reply {
  const body = parseChatBody(call)
  const model = requireModel(body['model'], 'v1/embeddings', 'embedding')
  const inputs = readInputs(body['input'])
  const dimensionsMax = model.id.endsWith('large') ? 3_072 : 1_536
  const dimensions = body['dimensions'] ?? dimensionsMax
  if (!isIntegerIn(dimensions, 1, dimensionsMax)) throw invalid('dimensions', `1 to ${dimensionsMax}`)
  const isBase64 = body['encoding_format'] === 'base64'
  const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0)
  const data = inputs.map(({ text }, index) => {
    const vector = embed(model.id, text, dimensions)
    const embedding = isBase64 ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector)
    return { object: 'embedding', index, embedding }
  })
  const usage = reported({ prompt_tokens: tokens, total_tokens: tokens }, call.behaviours)
  const list = { object: 'list', data, model: call.behaviours.model ?? model.snapshot, ...usage }
  return jsonReply(list, { pace: model.pace })
}

/** Texts, or lists of token numbers; one of either or several. */
function readInputs(input: unknown): { readonly text: string; readonly tokens: number }[] {
  if (input === undefined || input === null || input === '') throw missing('input')
  const inputs: unknown[] = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input]
  if (inputs.length === 0) throw invalid('input', 'at least one input')
  return inputs.map((each) => {
    if (typeof each === 'string') return { text: each, tokens: countTokens(each) }
    if (Array.isArray(each)) return { text: each.join(' '), tokens: each.length }
    throw invalid('input', 'a string or an array')
  })
}

/** A vector of length 1 that depends on model, text and dimensions alone, and says nothing about the meaning. */
function embed(model: string, text: string, dimensions: number): Float32Array {
  const chance = seededChance(seedFromText(model, text))
  const vector = Float32Array.from({ length: dimensions }, () => chance() * 2 - 1)
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return vector.map((value) => value / length)
}
