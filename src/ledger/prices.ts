import type { Actor } from '../kernel/vocabulary.ts'

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

/** Who changed prices, and what the event says. */
export interface PriceChange {
  readonly actor: Actor
  /** The version that applies after the change. */
  readonly version: string
  readonly models: readonly string[]
  readonly atMs: number
}
