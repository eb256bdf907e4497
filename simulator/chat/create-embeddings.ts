import type { Call } from '../call.ts'
import { seededChance, seedFromText } from '../chance.ts'
import { isIntegerIn, mergeJson } from '../json.ts'
import { embeddingInputsMax } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { countTokens } from '../tokens.ts'
import { invalid, missing, parseChatBody, requireModel } from './chat-body.ts'
import { chatHeaders } from './chat-headers.ts'

interface EmbeddingsBody {
  model?: unknown
  input?: unknown
  dimensions?: unknown
  encoding_format?: unknown
}

const dimensionsByModel: ReadonlyMap<string, number> = new Map([
  ['text-embedding-3-small', 1_536],
  ['text-embedding-3-large', 3_072],
  ['text-embedding-ada-002', 1_536],
])

/** POST /v1/embeddings */
export function createEmbeddings(call: Call): Reply {
  const body: EmbeddingsBody = parseChatBody(call)
  const model = requireModel(body.model, 'v1/embeddings', ['embedding'])
  const inputs = readInputs(body.input)
  const dimensionsMax = dimensionsByModel.get(model.id) ?? 1_536
  const dimensions = body.dimensions ?? dimensionsMax
  if (!isIntegerIn(dimensions, 1, dimensionsMax)) {
    throw new Refusal(400, `Invalid value for 'dimensions': must be between 1 and ${dimensionsMax}.`, {
      param: 'dimensions',
    })
  }
  const isBase64 = body.encoding_format === 'base64'
  const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0)
  const usage = { prompt_tokens: tokens, total_tokens: tokens }
  const list = {
    object: 'list',
    data: inputs.map((input, index) => ({
      object: 'embedding',
      index,
      embedding: encodeVector(embed(model.id, input.text, dimensions), isBase64),
    })),
    model: call.behaviours.model ?? model.snapshot,
    ...(call.behaviours.noUsage === true ? {} : { usage: mergeJson(usage, call.behaviours.usage ?? {}) }),
  }
  return jsonReply(200, list, { headers: chatHeaders(call.identity, tokens), pace: model.pace })
}

interface Input {
  readonly text: string
  readonly tokens: number
}

function readInputs(input: unknown): Input[] {
  if (input === undefined || input === null) throw missing('input')
  if (typeof input === 'string') return [toInput(input)]
  if (!Array.isArray(input)) throw invalid('input', 'a string or an array')
  if (input.length === 0) throw new Refusal(400, "'$.input' is invalid.", { param: 'input' })
  if (typeof input[0] === 'number') return [{ text: input.join(' '), tokens: input.length }]
  if (input.length > embeddingInputsMax) {
    throw new Refusal(400, `'$.input' is invalid: at most ${embeddingInputsMax} inputs.`, { param: 'input' })
  }
  return input.map(toInput)
}

function toInput(input: unknown): Input {
  if (typeof input === 'string' && input !== '') return { text: input, tokens: countTokens(input) }
  if (Array.isArray(input) && input.length > 0) return { text: input.join(' '), tokens: input.length }
  throw new Refusal(400, "'$.input' is invalid.", { param: 'input' })
}

/** A vector of length 1 that depends on model, text and dimensions alone. The vector says nothing about what the text means. */
function embed(model: string, text: string, dimensions: number): Float32Array {
  const chance = seededChance(seedFromText(model, text))
  const vector = Float32Array.from({ length: dimensions }, () => chance() * 2 - 1)
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return vector.map((value) => value / length)
}

function encodeVector(vector: Float32Array, isBase64: boolean): string | number[] {
  return isBase64 ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector)
}
