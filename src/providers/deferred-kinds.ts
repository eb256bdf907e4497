import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import { deliveredBytes, type Metered } from '../metering/meter.ts'
import type { UsageReader } from './endpoint.ts'
import { segmentsOf } from './path-spelling.ts'

interface DeferredKind {
  readonly surface: Surface
  readonly collection: `/v1/${string}`
  readonly reader: UsageReader
  readonly pausesMs: readonly [number, number]
  /** Path of the results that state the usage; null: there are none. Absent if the object itself states it. */
  results?(id: string, metered: Metered): string | null
}

const BATCH_PAUSES_MS = [30_000, 300_000] as const

export const DEFERRED_KINDS: Readonly<Record<ObjectKind, DeferredKind>> = {
  response: {
    surface: 'chat',
    collection: '/v1/responses',
    reader: 'responses',
    pausesMs: [2_000, 30_000],
  },
  message_batch: {
    surface: 'messages',
    collection: '/v1/messages/batches',
    reader: 'batch',
    pausesMs: BATCH_PAUSES_MS,
    results: (id) => `/v1/messages/batches/${id}/results`,
  },
  batch: {
    surface: 'chat',
    collection: '/v1/batches',
    reader: 'batch',
    pausesMs: BATCH_PAUSES_MS,
    results(_id, { resultsFile }) {
      if (resultsFile === null) return null
      if (!isObjectId(resultsFile)) throw new Error('the id of the results file cannot be part of a path')
      return `/v1/files/${resultsFile}/content`
    },
  },
}

/** In any other state an object may still be running. */
const FINAL: ReadonlySet<string | null> = new Set([
  ...['completed', 'incomplete', 'cancelled', 'failed', 'expired', 'ended'],
])

export function isFinal({ usage }: Metered): boolean {
  return FINAL.has(usage.stopReason)
}

/** Final states in which work was done. In other final states, an object that shows no output may have used nothing. */
const HAS_USED: ReadonlySet<string | null> = new Set(['completed', 'incomplete'])

/** Whether a final object states its usage, or used nothing. If not, its usage is estimated. */
export function statesUsage({ usage, inputKnown, outputKnown, output }: Metered): boolean {
  if (inputKnown && outputKnown) return true
  return !HAS_USED.has(usage.stopReason) && deliveredBytes(output) === 0
}

export function isObjectId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,256}$/.test(id)
}

export function pathOf(kind: ObjectKind, id: string): string {
  return `${DEFERRED_KINDS[kind].collection}/${id}`
}

/** The pause before the next poll. It equals the object's age, within limits, so it doubles each time. */
export function pauseMs(kind: ObjectKind, ageMs: number): number {
  const [shortest, longest] = DEFERRED_KINDS[kind].pausesMs
  return Math.min(longest, Math.max(shortest, ageMs))
}

/** The id of a possibly deferred object in a path to it or to its results, in any spelling. */
export function objectIdIn(surface: Surface, path: string): string | null {
  const segments = segmentsOf(path)
  for (const { surface: own, collection } of Object.values(DEFERRED_KINDS)) {
    if (own !== surface) continue
    const [id, below, ...rest] = segmentsIn(collection, segments)
    if (id !== undefined && (below ?? 'results').toLowerCase() === 'results' && rest.length === 0) return id
  }
  return null
}

export function fileIdIn(surface: Surface, path: string): string | null {
  const [id, ...rest] = segmentsIn('/v1/files', segmentsOf(path))
  return surface === 'chat' && rest.length === 0 ? (id ?? null) : null
}

/** The segments behind a collection; none if the path is elsewhere. */
function segmentsIn(collection: string, segments: readonly string[]): readonly string[] {
  const { length } = segmentsOf(collection)
  const head = segments.slice(0, length).join('/').toLowerCase()
  return head === segmentsOf(collection).join('/') ? segments.slice(length) : []
}
