import type { DatabaseContents } from './data-dir-facts.ts'

/** What the doctor has learned of the database that nodes share. Nothing in here is secret. */
export type PostgresFacts =
  | { readonly kind: 'unreachable'; readonly reason: string }
  | {
      readonly kind: 'open'
      readonly server: ServerFacts
      readonly schemaVersionKnown: number
      /** Null: there are no books in it yet. */
      readonly schemaVersion: number | null
      /** Null where the schema is not there, or not ours to read. */
      readonly books: BooksFacts | null
    }

export interface ServerFacts {
  /** As the server says it, such as "17.5". */
  readonly version: string
  readonly majorVersion: number
  /** It follows another server and takes no writes. */
  readonly isReplica: boolean
  /** Transactions are read-only unless they ask for more: by the settings of the server, the database or the role. */
  readonly isReadOnly: boolean
  /** Whether tables can be made: the schema at the first start, and every month one for its calls. */
  readonly mayCreateTables: boolean
  /** Whether a connection may have settings of its own. A pooler in transaction mode refuses them. */
  readonly takesSettings: boolean
  readonly roundTrip: { readonly medianMs: number; readonly count: number }
  /** How far this machine is ahead of it, at least: its answer may have been written at any moment of its way. */
  readonly aheadMs: number
  readonly durability: DurabilityFacts
  readonly bytes: number
}

/** As the server's settings say them. */
export interface DurabilityFacts {
  readonly fsync: string
  readonly synchronousCommit: string
  readonly fullPageWrites: string
}

export interface BooksFacts {
  readonly contents: DatabaseContents
  readonly nodes: NodesFacts
  readonly months: { readonly count: number; readonly bytes: number }
}

export interface NodesFacts {
  readonly alive: number
  /** Gone or given up, with calls that nobody has closed yet. */
  readonly unswept: number
  readonly callsOfUnswept: number
  /** Since when the one that is gone longest has not been heard of. Zero: there is none. */
  readonly longestSilenceMs: number
}
