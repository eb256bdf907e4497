import { NO_USAGE, type Quantities, type Unit } from '../kernel/usage.ts'
import {
  isObject,
  type JsonObject,
  objectShape,
  type ReplyDocument,
  Sized,
  scalars,
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

/** The object, or an empty one if the value is something else. */
export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : EMPTY
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A string of plausible length for a name: a model, a tier, a reason, an id. */
export function asName(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= NAME_LENGTH_MAX ? value : null
}

/** The index that distinguishes blocks or items that are open at the same time. */
export function asIndex(value: unknown): string {
  return typeof value === 'object' || typeof value === 'symbol' ? '' : String(value)
}

export function bytesWritten(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  return value instanceof Sized && value.isText ? value.bytes : 0
}

/** The tokens of a text of this size: about one per 4 bytes. */
export function tokensInBytes(bytes: number): number {
  return Math.ceil(bytes / 4)
}

/** The largest plausible count. Sums of thousands of such numbers are still exact. */
const COUNT_MAX = 1e12

/**
 * Reads the numbers of a reply and records whether all are plausible.
 *
 * A count is an integer from 0 to a trillion. Anything else (negative, fractional, larger, a string, an object) is
 * ignored and marks the call as suspect. Ignoring it never makes a call cheaper: if it was a total, that side is
 * estimated; if it was part of a total (cached, audio), the total is charged without that part.
 */
export class Counts {
  #suspect = false

  get suspect(): boolean {
    return this.#suspect
  }

  markSuspect(): void {
    this.#suspect = true
  }

  read(value: unknown): number | null {
    if (value === null || value === undefined) return null
    // The addition turns -0 into 0.
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX)
      return value + 0
    this.#suspect = true
    return null
  }

  /** Reads a number of seconds as milliseconds. */
  readSecondsAsMs(value: unknown): number | null {
    if (value === null || value === undefined) return null
    if (typeof value === 'number' && value >= 0 && value <= COUNT_MAX / 1000) return Math.round(value * 1000)
    this.#suspect = true
    return null
  }

  /** The next value of a count that can only rise. If it falls, the larger value stays. */
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

const BATCH = objectShape(scalars('id status processing_status output_file_id endpoint'))
const LAYOUT: ReplyLayout = { body: BATCH, event: BATCH }

/** Reads a batch object of either surface: status and location of the results, which have the usage. */
export class BatchReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly stage = 'over'
  readonly shown = NOTHING_SHOWN
  #batch: Readonly<Record<string, unknown>> = {}

  readEvent(): void {}

  readBody({ value }: ReplyDocument): void {
    if (isObject(value)) this.#batch = value
  }

  reading(): Reading {
    const stopReason = asName(this.#batch['processing_status']) ?? asName(this.#batch['status'])
    return {
      ...NOTHING_STATED,
      usage: { ...NO_USAGE, stopReason },
      objectId: asName(this.#batch['id']),
      resultsFile: asName(this.#batch['output_file_id']),
      requestsFor: asName(this.#batch['endpoint']),
    }
  }
}
