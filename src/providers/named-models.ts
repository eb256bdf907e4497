import { limits } from '../kernel/limits.ts'
import { type FoundModels, type NamedModels, NO_MODELS } from '../kernel/model-names.ts'
import { isObject, type JsonObject } from '../metering/json-shape.ts'
import type { Endpoint } from './endpoint.ts'
import { isGiven, MARKS, MODEL_NAME_CHARS_MAX, type RequestFacts } from './request-facts.ts'
import { toolModel, typeOf } from './request-tools.ts'
import { SURFACES } from './surfaces.ts'

/**
 * Finds every model that a request can use. If it may use models that are known only after the call, `unknown` says
 * why. Without both, the call uses no model or is free. `query` begins with `?`. `byDefault` is upstream's model for
 * requests that name none, if known.
 */
export function namedModels(
  found: Endpoint | null,
  path: string,
  facts: RequestFacts,
  query = '',
  byDefault: string | null = null,
): NamedModels {
  if (found === null) return unknown('The gateway does not know this endpoint.')
  if (found.billing === 'mints_credential')
    return unknown('This endpoint issues a credential that works for every model.')
  switch (found.model) {
    case 'none':
      return NO_MODELS
    case 'path':
      return named(modelInPath(found, path), 'The path names no model.')
    case 'query':
      return named(modelInQuery(query), 'The query does not name one model.')
    case 'json':
    case 'multipart':
      return namedInBody(found, facts, byDefault)
    case 'batch_entries':
      return namedInEntries(found, facts)
    case 'batch_file':
      return namedInFile(facts)
    case 'elsewhere':
      return unknown('The gateway cannot tell which models this endpoint uses.')
  }
}

function unknown(reason: string): NamedModels {
  return { ...NO_MODELS, unknown: reason }
}

function named(name: string | null, otherwise: string): NamedModels {
  if (name === null || name.length > MODEL_NAME_CHARS_MAX) return unknown(otherwise)
  return { ...NO_MODELS, names: [name] }
}

function modelInPath({ template }: Endpoint, path: string): string | null {
  return path.split('/')[template.split('/').indexOf('{model}')] ?? null
}

/** The model in a socket's query, if no other parameter (`call_id`, `intent`, a second value) can choose one. */
export function modelInQuery(query: string): string | null {
  const parameters = new URLSearchParams(query)
  const selectors = [...parameters.keys()].filter((name) => /model|call_?id|intent/i.test(name))
  return selectors.length === 1 ? parameters.get('model') || null : null
}

function namedInBody(endpoint: Endpoint, facts: RequestFacts, byDefault: string | null): NamedModels {
  if (facts.ambiguity !== null) return unknown(facts.ambiguity.detail)
  if (facts.kind === 'form' && endpoint.model === 'json')
    return unknown('The body is a form, but this endpoint expects JSON.')
  const names = new ModelNames()
  readModels(facts, names, byDefault)
  const { model } = facts.body
  // On a free endpoint only named models are checked. Items are stored, and used by later calls.
  const isOpen = endpoint.billing === 'free' && (!isGiven(model) || typeof model === 'string')
  const reason = isOpen ? facts.items.models.unknown : names.unknown
  return { ...NO_MODELS, ...names.found, unknown: reason ?? unseenTools(endpoint, facts) }
}

/** A tool defined inside a conversation can be an advisor with its own model. */
function unseenTools({ surface, billing }: Endpoint, { marks }: RequestFacts): string | null {
  if (!SURFACES[surface].toolsInConversation || billing === 'free' || (marks & MARKS.tool) === 0) return null
  return 'The conversation may contain tools that use other models.'
}

function namedInEntries(endpoint: Endpoint, facts: RequestFacts): NamedModels {
  const { ambiguity, items } = facts
  if (ambiguity !== null) return unknown(ambiguity.detail)
  if (facts.kind !== 'json') return unknown('The gateway could not read the requests of the batch.')
  const { models } = items
  return { ...NO_MODELS, ...models, unknown: models.unknown ?? unseenTools(endpoint, facts) }
}

export function namedInFile({ ambiguity, body }: RequestFacts): NamedModels {
  if (ambiguity !== null) return unknown(ambiguity.detail)
  const file = body['input_file_id']
  if (!isFileId(file)) return unknown('The batch does not name its input file.')
  return { ...NO_MODELS, batchFile: file }
}

const FILE_ID_CHARS_MAX = 256

export function isFileId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= FILE_ID_CHARS_MAX
}

export class ModelNames {
  readonly #names = new Set<string>()
  unknown: string | null = null

  get found(): FoundModels {
    return { names: [...this.#names], unknown: this.unknown }
  }

  /** Adds a model name. If it is unreadable, `member` is in the reason. */
  addName(name: unknown, member: string): void {
    if (typeof name !== 'string' || name.length > MODEL_NAME_CHARS_MAX)
      this.markUnknown(`The value of ${member} is not a model name.`)
    else if (this.#names.size < limits.batchModelsMax || this.#names.has(name)) this.#names.add(name)
    else this.markUnknown(`The request names more than ${limits.batchModelsMax} models.`)
  }

  markUnknown(reason: string | null): void {
    this.unknown ??= reason
  }

  add({ names, unknown }: FoundModels): void {
    for (const name of names) this.addName(name, '"tools"')
    this.markUnknown(unknown)
  }
}

/** Finds every model that a request can use. `byDefault` is upstream's model if the request names none. */
export function readModels(
  { body, others, items }: RequestFacts,
  names: ModelNames,
  byDefault: string | null = null,
): void {
  const model = body['model'] ?? byDefault
  if (model === null) names.markUnknown('The request names no model.')
  else names.addName(model, '"model"')
  names.add(others)
  names.add(items.models)
  if (isGiven(body['prompt']) && typeof body['prompt'] !== 'string' && !Array.isArray(body['prompt']))
    names.markUnknown('The stored prompt may use a model and tools that the request does not name.')
}

export function otherModels(body: JsonObject, tools: readonly JsonObject[] | null): FoundModels {
  const names = new ModelNames()
  readFallbacks(body['fallbacks'], names)
  readToolModels(tools, names)
  readModeration(body['moderation'], names)
  readSvg(body, names)
  return names.found
}

/** Tools add models: the one that a tool names, or upstream's default for it. */
export function readToolModels(tools: readonly JsonObject[] | null, names: ModelNames): void {
  if (tools === null) names.addName(null, '"tools"')
  for (const tool of tools ?? []) {
    const model = toolModel(tool) ?? tool['model']
    if (isGiven(model) || typeOf(tool).startsWith('advisor')) names.addName(model, '"tools"')
    readSvg(tool, names)
  }
}

/** Adds the models of fallbacks. If `fallbacks` is a string, only upstream knows the models. */
function readFallbacks(fallbacks: unknown, names: ModelNames): void {
  if (!isGiven(fallbacks)) return
  if (typeof fallbacks === 'string') {
    names.markUnknown('Upstream chooses the fallback models of this request.')
    return
  }
  for (const entry of Array.isArray(fallbacks) ? (fallbacks as readonly unknown[]) : [null])
    names.addName(isObject(entry) ? entry['model'] : entry, '"fallbacks"')
}

/** An object under `moderation` requests a moderation model; on the images endpoints it is a string. */
function readModeration(moderation: unknown, names: ModelNames): void {
  if (!isGiven(moderation) || typeof moderation === 'string') return
  names.addName(isObject(moderation) ? moderation['model'] : moderation, '"moderation"')
}

/** A second model writes SVG images. */
function readSvg(owner: JsonObject, names: ModelNames): void {
  if (!asksForSvg(owner)) return
  const { svg } = owner
  const author = isObject(svg) ? svg['model'] : svg
  if (isGiven(author)) names.addName(author, '"svg"')
  else names.markUnknown('Upstream chooses the model that writes the SVG.')
}

export function asksForSvg(owner: JsonObject): boolean {
  return isGiven(owner['svg']) || owner['output_format'] === 'svg'
}
