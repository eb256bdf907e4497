import { NO_USAGE, type Quantities, type Unit, type Usage, type UsagePart } from '../kernel/usage.ts'
import {
  glances,
  isObject,
  type JsonObject,
  objectShape,
  type ReplyDocument,
  Sized,
} from '../metering/json-shape.ts'
import {
  NOTHING_SHOWN,
  NOTHING_STATED,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
} from '../metering/meter.ts'

const EMPTY: JsonObject = {}
const NAME_LENGTH_MAX = 256

/** The object, or one without members in place of anything else. */
export function objectAt(value: unknown): JsonObject {
  return isObject(value) ? value : EMPTY
}

export function listAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A string that can be the name of something: a model, a tier, a reason, an id. */
export function nameAt(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= NAME_LENGTH_MAX ? value : null
}

/** The index that distinguishes blocks or items that are open at the same time. */
export function indexAt(value: unknown): string {
  return typeof value === 'object' || typeof value === 'symbol' ? '' : String(value)
}

export function bytesWritten(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  return value instanceof Sized && value.isText ? value.bytes : 0
}

/** Text of which only the size is known has about 4 bytes to a token. */
export function tokensInBytes(bytes: number): number {
  return Math.ceil(bytes / 4)
}

/** No call comes near a trillion of anything. Sums of a few thousand such numbers are still exact. */
const COUNT_MAX = 1e12

/**
 * Reads the numbers of a reply and remembers whether all of them can be true.
 *
 * The rule for numbers that cannot: a count is a whole number from 0 to a trillion. Anything else (negative,
 * fractional, larger, a string, an object) is left out as if it had not been sent, and makes the call suspect.
 * A number that is left out never makes a call cheaper by itself: where it was a total, that side of the call is
 * counted by us; where it was a part of a total (cached, audio), the total is charged as if there was no such part.
 */
export class Counts {
  #suspect = false

  get suspect(): boolean {
    return this.#suspect
  }

  doubt(): void {
    this.#suspect = true
  }

  read(value: unknown): number | null {
    if (value === null || value === undefined) return null
    // The addition makes a 0 of -0.
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX)
      return value + 0
    this.#suspect = true
    return null
  }

  readSeconds(value: unknown): number | null {
    if (value === null || value === undefined) return null
    if (typeof value === 'number' && value >= 0 && value <= COUNT_MAX / 1000) return Math.round(value * 1000)
    this.#suspect = true
    return null
  }

  /** The next value of a count that can only rise. Where it falls, the larger value is taken. */
  readRising(value: unknown, before: number | null): number | null {
    const count = this.read(value)
    if (count === null) return before
    if (before !== null && count < before) {
      this.#suspect = true
      return before
    }
    return count
  }
}

export function quantitiesOf(counts: { readonly [U in Unit]?: number | null }): Quantities {
  const quantities: { [U in Unit]?: number } = {}
  for (const unit in counts) {
    const count = counts[unit as Unit] ?? 0
    if (count > 0) quantities[unit as Unit] = count
  }
  return quantities
}

/** The findings of a reader of replies when its reply is over. Members that it cannot know are left out. */
interface Found extends Omit<Partial<Reading>, 'audio'> {
  /** The facts that the reply states of the whole call, but for its parts and for doubts. */
  readonly usage: Usage
  /** The parts of the response's own model, and of others that have the same two sides. */
  readonly parts: readonly UsagePart[]
  readonly inputKnown: boolean
  readonly outputKnown: boolean
  readonly outputTokensSeen: number
  readonly calls?: Quantities
  /** Parts of other models whose figures are known or not on their own. */
  readonly otherParts?: readonly UsagePart[]
  readonly suspect: boolean
}

/** The reading is built member by member: spreading `found`, and taking the rest of it, took 2 µs of every call. */
export function readingOf(found: Found): Reading {
  const { usage, parts, calls = {}, otherParts = [], inputKnown, outputKnown, suspect } = found
  const known = addToolCalls(partsOfKnownSides(parts, inputKnown, outputKnown), calls)
  return {
    usage: { ...usage, parts: [...known, ...otherParts], suspect },
    inputKnown,
    outputKnown,
    outputTokensSeen: found.outputTokensSeen,
    error: found.error ?? null,
    objectId: found.objectId ?? null,
    imagesBegun: found.imagesBegun ?? 0,
    reasoningTokens: found.reasoningTokens ?? null,
    containerIds: found.containerIds ?? [],
  }
}

const OUTPUT_UNITS: ReadonlySet<string> = new Set<Unit>([
  'output_tokens',
  'audio_output_tokens',
  'image_output_tokens',
])

/** The parts without the units of an unknown side; the first part is then that of the response's own model. */
function partsOfKnownSides(
  parts: readonly UsagePart[],
  inputKnown: boolean,
  outputKnown: boolean,
): readonly UsagePart[] {
  if (inputKnown && outputKnown) return parts
  const kept = parts.map((part) => ({
    model: part.model,
    quantities: unitsOfKnownSides(part.quantities, inputKnown, outputKnown),
    promptTokens: inputKnown ? part.promptTokens : 0,
  }))
  const own = kept.find((part) => part.model === null) ?? { model: null, quantities: {}, promptTokens: 0 }
  return [own, ...kept.filter((part) => part !== own)]
}

function unitsOfKnownSides(quantities: Quantities, inputKnown: boolean, outputKnown: boolean): Quantities {
  const isKnown = (unit: string): boolean => (OUTPUT_UNITS.has(unit) ? outputKnown : inputKnown)
  return Object.fromEntries(Object.entries(quantities).filter(([unit]) => isKnown(unit)))
}

/** Adds calls of tools, which are known whenever they were seen, to the part of the response's own model. */
export function addToolCalls(parts: readonly UsagePart[], calls: Quantities): readonly UsagePart[] {
  if (Object.keys(calls).length === 0) return parts
  const at = parts.findLastIndex((part) => part.model === null)
  if (at < 0) return [...parts, { model: null, quantities: calls, promptTokens: 0 }]
  return parts.map((part, i) => (i === at ? { ...part, quantities: { ...part.quantities, ...calls } } : part))
}

const BATCH = objectShape(glances('id status processing_status output_file_id endpoint'))
const LAYOUT: ReplyLayout = { body: BATCH, event: BATCH, dullEvents: [] }

/** Reads the object of a batch, of either surface: its status and where its results are. The usage stands in the results. */
export class BatchReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly stage = 'over'
  readonly shown = NOTHING_SHOWN
  #batch: Readonly<Record<string, unknown>> = {}

  readEvent(): void {}

  readDone(): void {}

  readBody({ value }: ReplyDocument): void {
    if (isObject(value)) this.#batch = value
  }

  reading(): Reading {
    const stopReason = nameAt(this.#batch['processing_status']) ?? nameAt(this.#batch['status'])
    return {
      ...NOTHING_STATED,
      usage: { ...NO_USAGE, stopReason },
      objectId: nameAt(this.#batch['id']),
      resultsFile: nameAt(this.#batch['output_file_id']),
      requestsFor: nameAt(this.#batch['endpoint']),
    }
  }
}
