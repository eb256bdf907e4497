import { once } from 'node:events'
import { startThread } from '../kernel/runtime.ts'
import { buildBook, type PriceLayers } from './build-book.ts'
import { compareVersions, type VersionComparison } from './compare-versions.ts'
import { instantMs } from './compile-version.ts'
import { loadLayers, readPriceList } from './load-book.ts'
import { versionAt } from './price-book.ts'
import type { PriceList } from './price-file.ts'
import { type ListConflict, mergeLists } from './price-list.ts'

export interface Push {
  /** The list as it was sent. */
  readonly given: unknown
  readonly layers: PriceLayers
  readonly atMs: number
}

export type JudgedPush =
  | { readonly kind: 'refused'; readonly problems: readonly string[] }
  | { readonly kind: 'conflict'; readonly conflict: ListConflict }
  | {
      readonly kind: 'accepted'
      readonly list: PriceList
      /** False: the gateway has all of it. */
      readonly isNew: boolean
      /** The id of the prices that apply with the list. */
      readonly version: string
      readonly difference: VersionComparison
    }

/** Whether a list can be used with the other layers, and what it changes. */
export function judgePush({ given, layers, atMs }: Push): JudgedPush {
  const read = readPriceList(given)
  if (read.kind === 'refused') return read
  const merged = mergeLists(layers.list, read.value)
  if ('reason' in merged) return { kind: 'conflict', conflict: merged }
  const { list, added } = merged
  const begin = added.map(({ effective_from }) => instantMs(effective_from))
  // New models of the base are in every version.
  const fromMs = list.base === layers.list.base ? Math.min(...begin) : -Infinity
  const next = loadLayers({ ...layers, list }, fromMs)
  if (next.kind === 'refused') return next
  const book = buildBook(layers)
  const comparisons = [...new Set([atMs, ...begin])].map((instant) =>
    compareVersions(versionAt(book, instant), versionAt(next.value, instant)),
  )
  const version = versionAt(next.value, atMs).id
  return { kind: 'accepted', list, isNew: list !== layers.list, version, difference: union(comparisons) }
}

function union(comparisons: readonly VersionComparison[]): VersionComparison {
  const changed = comparisons.flatMap((each) => each.changed)
  const byName = new Map(changed.map((each) => [`${each.model} ${each.unit}`, each]))
  return { added: [...new Set(comparisons.flatMap(({ added }) => added))], changed: [...byName.values()] }
}

/** In a thread of its own: to check 500 models takes 100 ms, in which no call would be answered. */
export async function judgePushInThread(push: Push): Promise<JudgedPush> {
  const [judged] = await once(startThread(import.meta.url, 'judge-push-thread', push), 'message')
  return judged as JudgedPush
}
