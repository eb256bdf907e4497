import { limits } from '../kernel/limits.ts'
import type { Surface } from '../kernel/surface.ts'
import { MARKS } from '../metering/content-marks.ts'
import type { Picked, PickedObject } from '../metering/json-place.ts'
import { MODEL_NAME_CHARS_MAX, type RequestFacts } from '../metering/request-facts.ts'
import { ambiguityOf } from './ambiguity.ts'
import { DEFAULT_IMAGE_MODEL } from './chat/images.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { isPickedArray, isPickedObject, membersOf } from './request-members.ts'
import { SURFACES } from './surfaces.ts'

/** The models that a request can lead to, as far as they can be known before it runs. */
export interface NamedModels {
  readonly names: readonly string[]
  /** Why there may be more than the names say, as a sentence, or null. */
  readonly unknown: string | null
  /** A file of requests that was uploaded before, whose models are the request's. */
  readonly batchFile: string | null
}

const NOTHING: NamedModels = { names: [], unknown: null, batchFile: null }

/** Agents and dreams may give their model as an object with settings, of which `id` is the name. */
const MODEL_MAY_BE_OBJECT = /^\/v1\/(?:agents|dreams)(?:\/|$)/

/**
 * Finds every model that a request can lead to. Models that cannot be known before the call has run are told as `unknown`;
 * the answer is empty only where no model takes part or the call is free. `query` is the target's, with its `?`; `byDefault`
 * is the model that upstream takes for a request that names none, where that is known.
 */
export function namedModels(
  endpoint: Endpoint | null,
  surface: Surface,
  method: string,
  path: string,
  facts: RequestFacts,
  query = '',
  byDefault: string | null = null,
): NamedModels {
  // HEAD does what GET does.
  const found = endpoint ?? (method === 'HEAD' ? findEndpoint(surface, 'GET', path) : null)
  if (found === null) return unknown('This endpoint is not one that the gateway knows.')
  if (found.billing === 'mints_credential')
    return unknown('This endpoint hands out a credential that reaches every model.')
  switch (found.model) {
    case 'none':
      return NOTHING
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
    case 'nested':
      return unknown('This endpoint names its models where the gateway does not read them.')
    case 'elsewhere':
      return found.billing === 'free'
        ? NOTHING
        : unknown('This endpoint names its model where it is not looked for.')
  }
}

function unknown(reason: string): NamedModels {
  return { ...NOTHING, unknown: reason }
}

function named(name: string | null, otherwise: string): NamedModels {
  if (name === null || name.length > MODEL_NAME_CHARS_MAX) return unknown(otherwise)
  return { ...NOTHING, names: [name] }
}

/** `path` is one that found the endpoint. */
function modelInPath({ template }: Endpoint, path: string): string | null {
  return path.split('/')[template.split('/').indexOf('{model}')] ?? null
}

/** With `call_id` or `intent` in its query a socket joins a call, or takes its model from an event. */
function modelInQuery(query: string): string | null {
  const models: string[] = []
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'model') models.push(value)
    else if (/^(?:model|call_id|intent)$/i.test(name)) return null
  }
  return models.length === 1 ? (models[0] ?? null) : null
}

function namedInBody(endpoint: Endpoint, facts: RequestFacts, byDefault: string | null): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  if (facts.kind === 'form' && endpoint.model === 'json')
    return unknown('The body is a form, and this endpoint reads JSON.')
  const names = new ModelNames()
  readModels(membersOf(facts), names, MODEL_MAY_BE_OBJECT.test(endpoint.template), byDefault)
  const records = facts.kind === 'json' ? facts.records : null
  const reason = endpoint.billing === 'free' ? names.unreadable : names.unknown
  return {
    names: records === null ? names.names : [...new Set([...names.names, ...records.models])],
    unknown: reason ?? records?.unknown ?? unseenTools(endpoint, facts),
    batchFile: null,
  }
}

/** A tool that is defined inside of a conversation can be an advisor, and names its model there. */
function unseenTools({ surface, billing }: Endpoint, facts: RequestFacts): string | null {
  if (!SURFACES[surface].toolsInConversation || billing === 'free' || facts.kind !== 'json') return null
  if ((facts.scan.marks & MARKS.tool) === 0) return null
  return 'The conversation defines tools, which may name models of their own.'
}

function namedInEntries(endpoint: Endpoint, facts: RequestFacts): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  if (facts.kind !== 'json' || facts.records === null)
    return unknown('The requests of the batch were not read.')
  const { records } = facts
  return {
    names: records.models,
    unknown: records.unknown ?? unseenTools(endpoint, facts),
    batchFile: null,
  }
}

export function namedInFile(facts: RequestFacts): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  const file = facts.kind === 'json' ? facts.scan.members.get('input_file_id') : undefined
  if (file?.kind !== 'string' || !isFileId(file.value))
    return unknown('The batch does not say which file it is made of.')
  return { ...NOTHING, batchFile: file.value }
}

/** The longest id that a file can have. */
const FILE_ID_CHARS_MAX = 256

export function isFileId(text: string): boolean {
  return text !== '' && text.length <= FILE_ID_CHARS_MAX
}

/** The models that requests name, and why there may be more. */
export class ModelNames {
  readonly #names = new Set<string>()
  #unreadable: string | null = null
  #open: string | null = null

  get names(): readonly string[] {
    return [...this.#names]
  }

  /** Why a name that is there cannot be checked, or null. */
  get unreadable(): string | null {
    return this.#unreadable
  }

  /** Why there may be more models than the names: one is unreadable, or is chosen elsewhere. */
  get unknown(): string | null {
    return this.#unreadable ?? this.#open
  }

  /** `what` says where the name stands, for the reason if it cannot be read. */
  name(name: Picked, what: string): void {
    if (typeof name !== 'string' || name.length > MODEL_NAME_CHARS_MAX) this.cannotRead(what)
    else if (this.#names.size < limits.batchModelsMax || this.#names.has(name)) this.#names.add(name)
    else this.#unreadable ??= `The request names more than ${limits.batchModelsMax} models.`
  }

  cannotRead(what: string): void {
    this.#unreadable ??= `What the request says under ${what} cannot be read as the name of a model.`
  }

  leaveOpen(reason: string): void {
    this.#open ??= reason
  }
}

/**
 * Finds every model that a request can lead to. `mayBeObject` is for requests that may give the model as an object with an
 * `id`, `byDefault` is the model that upstream takes if the request names none.
 */
export function readModels(
  body: PickedObject,
  names: ModelNames,
  mayBeObject = false,
  byDefault: string | null = null,
): void {
  const model = body['model'] ?? byDefault
  if (model === null) names.leaveOpen('The request names no model.')
  else if (mayBeObject && isPickedObject(model)) names.name(model['id'] ?? null, '"model"')
  else names.name(model, '"model"')
  readOtherModels(body, names)
}

/** Whether a body has members that could lead to other models than the one that the request is for. */
export function mayLeadToOthers(body: PickedObject): boolean {
  return Object.keys(body).length > (body['model'] === undefined ? 0 : 1)
}

/** The models that take part besides the one that the request is for. */
export function readOtherModels(body: PickedObject, names: ModelNames): void {
  if (!mayLeadToOthers(body)) return
  readFallbacks(body['fallbacks'] ?? null, names)
  readTools(body['tools'] ?? null, names)
  readItems(body['input'] ?? null, names)
  readModeration(body['moderation'] ?? null, names)
  readSvg(body, names)
  if (isPickedObject(body['prompt']))
    names.leaveOpen('The stored prompt may bring a model and tools of its own.')
  readMethod(body['method'] ?? null, names)
}

/** Tools bring models: the model that a tool names, or the one that upstream takes if the tool names none. */
function readTools(tools: Picked, names: ModelNames): void {
  if (tools === null) return
  const list: readonly Picked[] = isPickedArray(tools) ? tools : [tools]
  for (const tool of list) {
    if (isPickedObject(tool)) readTool(tool, names)
    else names.cannotRead('"tools"')
  }
}

function readTool(tool: PickedObject, names: ModelNames): void {
  const type = tool['type'] ?? ''
  const model = tool['model'] ?? null
  if (typeof type !== 'string') names.cannotRead('"tools"')
  else if (model !== null) names.name(model, '"tools"')
  else if (type.startsWith('image_generation')) names.name(DEFAULT_IMAGE_MODEL, '"tools"')
  else if (type.startsWith('advisor')) names.cannotRead('"tools"')
  readSvg(tool, names)
  readTools(tool['tools'] ?? null, names)
}

function readItems(items: Picked, names: ModelNames): void {
  if (!isPickedArray(items)) return
  for (const item of items) readItem(item, names)
}

/** An item of the input can bring tools. */
export function readItem(item: Picked, names: ModelNames): void {
  if (isPickedObject(item)) readTools(item['tools'] ?? null, names)
}

/** Fallbacks that are a string ask for a chain of models that only upstream knows. */
function readFallbacks(fallbacks: Picked, names: ModelNames): void {
  if (fallbacks === null) return
  if (typeof fallbacks === 'string') {
    names.leaveOpen('The fallbacks are left to upstream to choose.')
    return
  }
  for (const model of fallbackModels(fallbacks)) names.name(model, '"fallbacks"')
}

/** The name of each entry, or the value in its place. */
function fallbackModels(fallbacks: Picked): readonly Picked[] {
  const entries: readonly Picked[] = isPickedArray(fallbacks) ? fallbacks : [null]
  return entries.map((entry) => (isPickedObject(entry) ? (entry['model'] ?? null) : entry))
}

/** An object under `moderation` asks for a moderation model; the images endpoints have a word there. */
function readModeration(moderation: Picked, names: ModelNames): void {
  if (moderation === null || typeof moderation === 'string') return
  names.name(isPickedObject(moderation) ? (moderation['model'] ?? null) : moderation, '"moderation"')
}

/** An image as SVG is written by a second model. */
function readSvg(owner: PickedObject, names: ModelNames): void {
  if (!asksForSvg(owner)) return
  const svg = owner['svg'] ?? null
  const author = isPickedObject(svg) ? (svg['model'] ?? null) : svg
  if (author !== null) names.name(author, '"svg"')
  else names.leaveOpen('The model that writes the SVG is left to upstream to choose.')
}

export function asksForSvg(owner: PickedObject): boolean {
  return (owner['svg'] ?? null) !== null || owner['output_format'] === 'svg'
}

/** Reinforcement has its answers graded, possibly by models. */
function readMethod(method: Picked, names: ModelNames): void {
  if (method === null) return
  const type = isPickedObject(method) && method['reinforcement'] === undefined ? method['type'] : undefined
  if (type !== 'supervised' && type !== 'dpo')
    names.leaveOpen('The training may use models that grade it, named where they are not looked for.')
}
