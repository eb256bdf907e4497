import type { Behaviours } from '../behaviours.ts'
import type { Call } from '../call.ts'
import type { ToolWish } from '../choose-tools.ts'
import { asArray, isIntegerIn, isObject, type JsonObject, mergeJson, parseJson } from '../json.ts'
import { findModel, type Model } from '../models.ts'
import { Refusal } from '../refusal.ts'

// Members of request bodies that the endpoints of the Chat surface share, refused in upstream's words.

export function parseChatBody(call: Call): JsonObject {
  const body = parseJson(call.body.toString('utf8'))
  if (isObject(body)) return body
  throw new Refusal(400, 'We could not parse the JSON body of your request.')
}

export function missing(param: string): Refusal {
  const code = 'missing_required_parameter'
  return new Refusal(400, `Missing required parameter: '${param}'.`, { param, code })
}

export function invalid(param: string, expectation: string): Refusal {
  const code = 'invalid_type'
  return new Refusal(400, `Invalid type for '${param}': expected ${expectation}.`, { param, code })
}

export function requireModel(name: unknown, endpoint: string, ...kinds: readonly string[]): Model {
  if (typeof name !== 'string') throw missing('model')
  const model = findModel('chat', name)
  if (model === undefined) {
    const code = 'model_not_found'
    throw new Refusal(404, `The model \`${name}\` does not exist or you do not have access to it.`, { code })
  }
  if (kinds.includes(model.kind)) return model
  const param = 'model'
  throw new Refusal(404, `The model \`${name}\` is not supported in the ${endpoint} endpoint.`, { param })
}

/** A limit on the output, if the request states one under this name. */
export function readTokenLimit(body: JsonObject, param: string, min: number, model: Model): number | null {
  const value = body[param] ?? null
  if (value === null) return null
  if (isIntegerIn(value, min, model.outputTokensMax)) return value
  const code = 'invalid_value'
  const expected = `an integer from ${min} to ${model.outputTokensMax}`
  throw new Refusal(400, `Invalid '${param}': expected ${expected}.`, { param, code })
}

export function readChoices(value: unknown, max: number): number {
  if (value === undefined || value === null) return 1
  if (isIntegerIn(value, 1, max)) return value
  throw invalid('n', `an integer between 1 and ${max}`)
}

const tiers: Readonly<Record<string, string>> = { fast: 'priority', auto: 'default' }

/** The tier that serves a request: a tier that is asked for under one name may be reported under another. */
export function readTier(value: unknown): string {
  if (value === undefined || value === null) return 'default'
  if (/^(?:auto|default|flex|scale|priority|fast|ultrafast)$/.test(String(value))) {
    return tiers[String(value)] ?? String(value)
  }
  const param = 'service_tier'
  throw new Refusal(400, `Invalid service_tier argument: ${JSON.stringify(value)}`, { param })
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
  const named = isObject(format['json_schema']) ? format['json_schema'] : format
  if (!isObject(named['schema'])) throw missing(`${param}.schema`)
  return named['schema']
}

const thinkingByEffort: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 0,
  low: 16,
  high: 96,
  xhigh: 192,
  max: 192,
}

export function thinkingTokens(model: Model, effort: unknown): number {
  return model.reasons ? (thinkingByEffort[String(effort)] ?? 32) : 0
}

/** Random characters that hide the length of a delta from an observer of the wire; none unless asked for. */
export function obfuscate(options: unknown, padding: string): (delta: string) => JsonObject {
  const isOff = isObject(options) && options['include_obfuscation'] === false
  return (delta) => (isOff ? {} : { obfuscation: padding.slice(0, 4 + ((16 - (delta.length % 16)) % 16)) })
}

/** Usage with the members that the request laid over it, or nothing if the request asked for none. */
export function reported(usage: JsonObject, { noUsage, usage: over }: Behaviours): JsonObject {
  return noUsage === true ? {} : { usage: mergeJson(usage, over ?? {}) }
}

export function textOfParts(content: unknown): { words: string; attachments: number } {
  if (typeof content === 'string') return { words: content, attachments: 0 }
  const texts = asArray(content).map((part) => (isObject(part) ? part['text'] : undefined))
  const words = texts.filter((text) => typeof text === 'string')
  return { words: words.join(' '), attachments: texts.length - words.length }
}
