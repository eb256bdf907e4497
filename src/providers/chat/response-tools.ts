import type { Quantities, UsagePart } from '../../kernel/usage.ts'
import {
  type Counts,
  isObject,
  listAt,
  nameAt,
  objectAt,
  quantitiesOf,
  type WireObject,
} from '../usage/reading.ts'
import { IMAGE_TOOL_MODEL } from './images.ts'
import { partOf, type ReportedTokens, readTokens } from './tokens.ts'

/** No response makes more calls than this; beyond it they are neither told apart nor counted. */
const CALLS_MAX = 10_000

/** Calls of tools that are seen as output items; most of these costs stand nowhere in the usage. */
export class SeenTools {
  readonly #ids = new Set<string>()
  readonly #containers = new Set<string>()
  #webSearches = 0
  #fileSearches = 0
  readonly #svgParts: UsagePart[] = []

  /** An item that is done. One that is shown twice counts once. */
  read(item: WireObject, counts: Counts): void {
    this.noteContainer(item, counts)
    const type = nameAt(item['type'])
    if (type !== 'web_search_call' && type !== 'file_search_call' && type !== 'image_generation_call') return
    const id = nameAt(item['id']) ?? `unnamed ${this.#ids.size}`
    if (this.#ids.size === CALLS_MAX) counts.doubt()
    if (this.#ids.size === CALLS_MAX || this.#ids.has(id)) return
    this.#ids.add(id)
    if (type === 'file_search_call') this.#fileSearches++
    else if (type === 'image_generation_call') this.#svgParts.push(...svgParts(item['svg_usage'], counts))
    // Opening a page and looking for words on it are free.
    else if (objectAt(item['action'])['type'] === 'search') this.#webSearches++
  }

  /** The machine that an item runs code or a shell in. It is paid from when it is there, done or not, and once. */
  noteContainer(item: WireObject, counts: Counts): void {
    const id = nameAt(item['container_id']) ?? nameAt(objectAt(item['environment'])['container_id'])
    if (id === null || this.#containers.has(id)) return
    if (this.#containers.size === CALLS_MAX) counts.doubt()
    else this.#containers.add(id)
  }

  get svgParts(): readonly UsagePart[] {
    return this.#svgParts
  }

  /** Where upstream says how many searches it charges for, that counts: it leaves out the discounted ones. */
  calls(webSearches: number | null): Quantities {
    return quantitiesOf({
      web_searches: webSearches ?? this.#webSearches,
      file_searches: this.#fileSearches,
      containers: this.#containers.size,
    })
  }
}

/** What the model that drew a vector image used: another model than the one that renders it. */
export function svgParts(value: unknown, counts: Counts): UsagePart[] {
  if (!isObject(value)) return []
  return [partOf(nameAt(value['model']) ?? IMAGE_TOOL_MODEL, readTokens(value, counts))]
}

/** Tokens of an image model: output without details is images. */
export function readImageTokens(usage: WireObject, counts: Counts): ReportedTokens {
  const tokens = readTokens(usage, counts)
  if (tokens.output === null || isObject(usage['output_tokens_details'])) return tokens
  const { total } = tokens.output
  return { ...tokens, output: { total, quantities: quantitiesOf({ image_output_tokens: total }) } }
}

/** What image tools used besides the model itself, from `tool_usage`. */
export function imageToolParts(response: WireObject, counts: Counts): UsagePart[] {
  const usage = objectAt(response['tool_usage'])['image_gen']
  if (!isObject(usage)) return []
  const part = partOf(imageToolModel(response), readImageTokens(usage, counts))
  return Object.keys(part.quantities).length > 0 ? [part] : []
}

/** The response repeats the tools of the request; the model is among them if the request named it. */
function imageToolModel(response: WireObject): string {
  const tool = listAt(response['tools']).find((value) => objectAt(value)['type'] === 'image_generation')
  return nameAt(objectAt(tool)['model']) ?? IMAGE_TOOL_MODEL
}
