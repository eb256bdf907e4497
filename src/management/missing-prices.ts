import { SURFACE_NAMES } from '../kernel/vocabulary.ts'
import { OTHER_MODELS, type UnpricedModel } from '../ledger/prices.ts'
import { findModel, suggestModel, versionAt } from '../pricing/price-book.ts'
import { defineRoute, formatInstant, listObject, type ServingNode } from './route.ts'

const MISSING_MS = 30 * 24 * 60 * 60 * 1_000

interface MissingModel extends Omit<UnpricedModel, 'lastAtMs'> {
  /** Null: it is offered, but nobody asked for it. */
  readonly lastAtMs: number | null
  readonly offered: boolean
}

export const listMissingPrices = defineRoute({
  summary: 'List models without a price',
  description:
    'Models that were asked for in the last 30 days, the latest first, then others that upstream offers. Models that have a price ' +
    'by now are left out. Names that upstream does not offer are counted together as `other`, as are refused calls of all but the ' +
    'latest 200 names, and the latest 100 of an account.',
  async handle({ atMs }, { store, node, refusedCalls }) {
    await refusedCalls.written()
    const version = versionAt(node.prices.book, atMs)
    const asked = await store.listUnpricedModels(atMs - MISSING_MS)
    const data = missingModels(asked, node, (model) => findModel(version, model) === null)
      .toSorted((a, b) => (b.lastAtMs ?? 0) - (a.lastAtMs ?? 0))
      .map(({ lastAtMs, ...row }) => {
        const name = row.model === OTHER_MODELS ? null : suggestModel(version.names.keys(), row.model)
        return { ...row, last_at: formatInstant(lastAtMs), closest: findModel(version, name)?.id ?? null }
      })
    return listObject(data, null)
  },
})

/** One row for each model of a surface. */
function missingModels(
  asked: readonly UnpricedModel[],
  { offered }: Pick<ServingNode, 'offered'>,
  isMissing: (model: string) => boolean,
): readonly MissingModel[] {
  const offers = SURFACE_NAMES.flatMap((surface) =>
    [...(offered(surface) ?? [])].map((model) => {
      return { model, surface, refused: 0, passed: 0, lastAtMs: null, offered: true }
    }),
  )
  const called = asked.map((row) => ({ ...row, offered: offered(row.surface)?.has(row.model) === true }))
  const rows = summed([...called, ...offers].filter(({ model }) => isMissing(model)))
  // A call that passed shows that the model exists.
  const isInvented = (row: MissingModel) => !row.offered && row.passed === 0 && offered(row.surface) !== null
  return summed(rows.map((row) => (isInvented(row) ? { ...row, model: OTHER_MODELS } : row)))
}

function summed(rows: readonly MissingModel[]): readonly MissingModel[] {
  const byName = new Map<string, MissingModel>()
  for (const row of rows) {
    const name = `${row.surface} ${row.model}`
    const known = byName.get(name)
    byName.set(name, known === undefined ? row : sumOf(known, row))
  }
  return [...byName.values()]
}

function sumOf(one: MissingModel, other: MissingModel): MissingModel {
  return {
    ...one,
    refused: one.refused + other.refused,
    passed: one.passed + other.passed,
    lastAtMs: Math.max(one.lastAtMs ?? 0, other.lastAtMs ?? 0) || null,
  }
}
