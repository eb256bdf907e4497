import type { Actor } from '../kernel/actor.ts'
import type { Surface } from '../kernel/vocabulary.ts'

/** Prices in the database. Nodes watch `changes`, and read the rest when it has grown. */
export interface StoredPrices {
  readonly changes: number
  /** JSON of the list with the highest revision. Null: no gateway has started with this database. */
  readonly listJson: string | null
  readonly sets: readonly StoredSetPrice[]
}

export interface StoredSetPrice {
  readonly model: string
  readonly effectiveFromMs: number
  /** JSON. Null: the set price ends. */
  readonly entry: string | null
}

/** Stands for names that are counted together, because clients can invent any number of them. */
export const OTHER_MODELS = 'other'

/** A model whose calls had no price of their own. A call is refused, or passes at no cost or under a fallback. */
export interface UnpricedModel {
  readonly model: string
  readonly surface: Surface
  readonly refused: number
  readonly passed: number
  readonly lastAtMs: number
}

/** Who changed prices, and what the event says. */
export interface PriceChange {
  readonly actor: Actor
  /** The version that applies after the change. */
  readonly version: string
  readonly models: readonly string[]
  readonly atMs: number
}
