import { limits } from '../kernel/limits.ts'
import type { Picked, PickedObject } from '../metering/json-place.ts'
import { MODEL_NAME_CHARS_MAX } from '../metering/request-facts.ts'
import { DEFAULT_IMAGE_MODEL } from './chat/images.ts'
import { isPickedArray, isPickedObject } from './request-members.ts'

/** The models that requests name, and why there may be more. */
export class ModelNames {
  readonly #names = new Set<string>()
  #unreadable: string | null = null
  #open: string | null = null

  get names(): readonly string[] {
    return [...this.#names]
  }

  /** Of a name that is there and cannot be checked. */
  get unreadable(): string | null {
    return this.#unreadable
  }

  /** Also of models that are chosen elsewhere. */
  get unknown(): string | null {
    return this.#unreadable ?? this.#open
  }

  /** `what` says where the name stands, if it is none. */
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
 * Finds every model that a request can lead to. `mayBeObject` is for those that may give it as an object with an `id`,
 * `byDefault` is what upstream takes if there is none.
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

/** Whether there is anything that could lead to other models than the one that the request is for. */
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

/** Tools bring models: one they name, or one that upstream takes if they name none. */
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

/** A string asks for a chain of models that only upstream knows. */
function readFallbacks(fallbacks: Picked, names: ModelNames): void {
  if (fallbacks === null) return
  if (typeof fallbacks === 'string') {
    names.leaveOpen('The fallbacks are left to upstream to choose.')
    return
  }
  for (const model of fallbackModels(fallbacks)) names.name(model, '"fallbacks"')
}

/** Of each entry the name, or what stands in its place. */
function fallbackModels(fallbacks: Picked): readonly Picked[] {
  const entries: readonly Picked[] = isPickedArray(fallbacks) ? fallbacks : [null]
  return entries.map((entry) => (isPickedObject(entry) ? (entry['model'] ?? null) : entry))
}

/** An object asks for a moderation model; the images endpoints have a word here. */
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
