/** What can be said of the store itself. */

export interface NodeRecord {
  readonly id: string
  readonly name: string
  readonly startedAtMs: number
  readonly seenAtMs: number
  /** It was given up, and admits nothing any more. */
  readonly fenced: boolean
}

export interface StoreFacts {
  readonly kind: 'sqlite' | 'postgres'
  readonly sizeBytes: number
  /** Those that share the database; those that were given up long ago are forgotten. Null where there is one only. */
  readonly nodes: readonly NodeRecord[] | null
}

export interface StoreFactsStore {
  readStoreFacts(): Promise<StoreFacts>
}
