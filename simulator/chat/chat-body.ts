import type { Call } from '../call.ts'
import type { ToolWish } from '../choose-tools.ts'
import { asArray, asText, isIntegerIn, isObject, type JsonObject } from '../json.ts'
import { findModel, type Model, type ModelKind } from '../models.ts'
import { Refusal } from '../refusal.ts'

// Checks that the endpoints of the Chat surface share, in upstream's words.

export function parseChatBody(call: Call): JsonObject {
  let body: unknown
  try {
    body = JSON.parse(call.body.toString('utf8'))
  } catch {
    throw new Refusal(
      400,
      "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON payload, but what was sent was not valid JSON.)",
    )
  }
  if (!isObject(body)) throw new Refusal(400, 'Invalid body: expected an object.', { code: 'invalid_type' })
  return body
}

export function missing(param: string): Refusal {
  return new Refusal(400, `Missing required parameter: '${param}'.`, {
    param,
    code: 'missing_required_parameter',
  })
}

export function invalid(param: string, expectation: string): Refusal {
  return new Refusal(400, `Invalid type for '${param}': expected ${expectation}.`, {
    param,
    code: 'invalid_type',
  })
}

export function requireModel(name: unknown, endpoint: string, kinds: readonly ModelKind[]): Model {
  if (name === undefined || name === null) throw new Refusal(400, 'you must provide a model parameter')
  if (typeof name !== 'string') throw invalid('model', 'a string')
  const model = findModel('chat', name)
  if (model === undefined) {
    throw new Refusal(404, `The model \`${name}\` does not exist or you do not have access to it.`, {
      code: 'model_not_found',
    })
  }
  if (!kinds.includes(model.kind)) {
    throw new Refusal(404, `The model \`${name}\` is not supported in the ${endpoint} endpoint.`, {
      param: 'model',
    })
  }
  return model
}

/** A limit on the output, if the request states one under this name. */
export function readTokenLimit(value: unknown, param: string, min: number, model: Model): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value)) throw invalid(param, 'an integer')
  if (value < min) {
    throw new Refusal(
      400,
      `Invalid '${param}': integer below minimum value. Expected a value >= ${min}, but got ${value} instead.`,
      { param, code: 'integer_below_min_value' },
    )
  }
  if (value > model.outputTokensMax) {
    throw new Refusal(
      400,
      `${param} is too large: ${value}. This model supports at most ${model.outputTokensMax} completion tokens, whereas you provided ${value}.`,
      { param, code: 'invalid_value' },
    )
  }
  return value
}

export function readBoolean(value: unknown, param: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw invalid(param, 'a boolean')
  return value
}

export function readChoices(value: unknown, max: number): number {
  if (value === undefined || value === null) return 1
  if (!isIntegerIn(value, 1, max)) {
    throw new Refusal(400, `Invalid 'n': expected an integer between 1 and ${max}.`, {
      param: 'n',
      code: 'integer_out_of_range',
    })
  }
  return value
}

export function readStops(value: unknown): string[] {
  return typeof value === 'string' ? [value] : asArray(value).map(asText)
}

export interface StreamOptions {
  readonly includeUsage: boolean
  readonly obfuscates: boolean
}

export function readStreamOptions(value: unknown, isStream: boolean): StreamOptions {
  const options = (isObject(value) ? value : {}) as { include_usage?: unknown; include_obfuscation?: unknown }
  if (!isStream && isObject(value)) {
    throw new Refusal(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: 'stream_options',
    })
  }
  return { includeUsage: options.include_usage === true, obfuscates: options.include_obfuscation !== false }
}

const tiers: ReadonlyMap<unknown, string> = new Map([
  [undefined, 'default'],
  [null, 'default'],
  ['auto', 'default'],
  ['default', 'default'],
  ['flex', 'flex'],
  ['scale', 'scale'],
  ['priority', 'priority'],
  ['fast', 'priority'],
  ['ultrafast', 'ultrafast'],
])

/** The tier that serves a request: a tier that is asked for under one name may be reported under another. */
export function readTier(value: unknown): string {
  const tier = tiers.get(value)
  if (tier === undefined) {
    throw new Refusal(400, `Invalid service_tier argument: ${JSON.stringify(value)}`, {
      param: 'service_tier',
    })
  }
  return tier
}

/** `tool_choice` of the Chat endpoint nests the name in `function`, that of Responses does not. */
export function readToolWish(choice: unknown): ToolWish {
  if (choice === 'none') return { kind: 'none' }
  if (choice === 'required') return { kind: 'any' }
  if (!isObject(choice)) return { kind: 'auto' }
  if (choice['type'] === 'allowed_tools') {
    const allowed = choice['allowed_tools']
    return readToolWish(isObject(allowed) ? allowed['mode'] : choice['mode'])
  }
  const nested = choice['function'] ?? choice['custom']
  // A tool of upstream's own is named by its type alone.
  const name = (isObject(nested) ? nested['name'] : choice['name']) ?? choice['type']
  return typeof name === 'string' ? { kind: 'named', name } : { kind: 'auto' }
}

/** The schema of a structured answer; any object for the older JSON mode. Chat nests the schema, Responses does not. */
export function readSchema(format: unknown, param: string): JsonObject | undefined {
  if (!isObject(format) || format['type'] === 'text') return undefined
  if (format['type'] === 'json_object') return { type: 'object', properties: { answer: { type: 'string' } } }
  if (format['type'] !== 'json_schema') throw invalid(`${param}.type`, 'text, json_object or json_schema')
  const named = isObject(format['json_schema']) ? format['json_schema'] : format
  if (!isObject(named['schema'])) throw missing(`${param}.schema`)
  return named['schema']
}

/** Refuses a tool that is not played, and says which are. */
export function unplayedTool(param: string, type: unknown, played: readonly string[]): Refusal {
  return new Refusal(
    400,
    `This is the simulator: it does not play tools of type ${JSON.stringify(type)}. It plays ${played.join(', ')}.`,
    { param, code: 'invalid_value' },
  )
}

const reasoningTokensByEffort: ReadonlyMap<unknown, number> = new Map([
  ['none', 0],
  ['minimal', 0],
  ['low', 16],
  ['medium', 32],
  ['high', 96],
  ['xhigh', 192],
  ['max', 192],
])

export function reasoningTokens(model: Model, effort: unknown): number {
  return model.reasons ? (reasoningTokensByEffort.get(effort) ?? 32) : 0
}

/** Padding that hides the length of a delta from an observer of the wire. */
export function obfuscation(hex: string, delta: string): string {
  return hex.slice(0, 4 + ((16 - (delta.length % 16)) % 16))
}
