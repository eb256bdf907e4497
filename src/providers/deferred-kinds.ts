import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { Metered } from '../metering/meter.ts'
import type { UsageReader } from './endpoint.ts'
import { plainPath } from './find-endpoint.ts'

interface DeferredKind {
  readonly surface: Surface
  readonly collection: `/v1/${string}`
  readonly reader: UsageReader
  readonly pausesMs: readonly [number, number]
  /** The path of the results that state the usage, or null if there are none; left out if the object states it itself. */
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
    results(_id, { resultsFile = null }) {
      if (resultsFile === null) return null
      if (!isObjectId(resultsFile)) throw new Error('the id of the results file cannot be part of a path')
      return `/v1/files/${resultsFile}/content`
    },
  },
}

/** Final states. An object in a state that is not listed may still be running. */
const FINAL: ReadonlySet<string | null> = new Set([
  ...['completed', 'incomplete', 'cancelled', 'failed', 'expired', 'ended'],
])

export function isFinal({ usage }: Metered): boolean {
  return FINAL.has(usage.stopReason)
}

/** Final states in which work was done. In the others an object may have used nothing, and then states nothing. */
const HAS_USED: ReadonlySet<string | null> = new Set(['completed', 'incomplete'])

export function statesUsage({ usage, inputKnown, outputKnown }: Metered): boolean {
  return (inputKnown && outputKnown) || !HAS_USED.has(usage.stopReason)
}

export function isObjectId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,256}$/.test(id)
}

export function pathOf(kind: ObjectKind, id: string): string {
  return `${DEFERRED_KINDS[kind].collection}/${id}`
}

/** The pause before the next poll of an object of this age. It grows with the age, so it doubles each time. */
export function pauseMs(kind: ObjectKind, ageMs: number): number {
  const [shortest, longest] = DEFERRED_KINDS[kind].pausesMs
  return Math.min(longest, Math.max(shortest, ageMs))
}

/** The id in the path of an object that may be deferred, or of its results, however the path is spelled. */
export function objectIdIn(surface: Surface, path: string): string | null {
  const plain = plainPath(path)
  for (const { surface: own, collection } of Object.values(DEFERRED_KINDS)) {
    if (own !== surface || !plain.startsWith(`${collection}/`)) continue
    const [id = '', below, ...rest] = plain.slice(collection.length + 1).split('/')
    if (id !== '' && (below === undefined || below === 'results') && rest.length === 0) return id
  }
  return null
}

export function fileIdIn(surface: Surface, path: string): string | null {
  return surface === 'chat' ? (/^\/v1\/files\/([^/]+)$/.exec(plainPath(path))?.[1] ?? null) : null
}
