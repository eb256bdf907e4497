/** What the examiner's process tells about the data directory. Nothing in here is secret. */
export interface DataDirFacts {
  readonly directory: DirectoryFacts
  readonly disk: DiskFacts
  readonly database: DatabaseFacts
  readonly integrity: readonly IntegrityFacts[]
}

export type DirectoryFacts =
  | { readonly kind: 'missing'; readonly above: string; readonly aboveWritable: boolean }
  | { readonly kind: 'unusable'; readonly reason: string }
  | {
      readonly kind: 'there'
      readonly mode: number
      readonly writable: boolean
      readonly pepper: PepperFile
      /** Of the file with the first admin key, if it is still there. */
      readonly adminKeyMode: number | null
    }

export type PepperFile =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'there'; readonly mode: number; readonly fingerprint: string }

export interface DiskFacts {
  readonly freeBytes: number
  readonly totalBytes: number
  /** Null where nothing can be written yet. */
  readonly fsync: { readonly medianMs: number; readonly count: number } | { readonly reason: string } | null
}

export type DatabaseFacts =
  | { readonly kind: 'missing' }
  | { readonly kind: 'broken'; readonly reason: string }
  | {
      readonly kind: 'open'
      readonly bytes: number
      readonly walBytes: number
      readonly bodiesBytes: number
      readonly schemaVersion: number
      readonly schemaVersionKnown: number
      /** Null: it cannot be told. */
      readonly serving: boolean | null
      /** Null in a database whose schema is not ours to read. */
      readonly contents: DatabaseContents | null
    }

/** The books, wherever they are, as far as the keys in them are concerned. */
export type KnownBooks =
  | { readonly kind: 'missing' | 'broken' }
  | {
      readonly kind: 'open'
      readonly serving: boolean | null
      readonly contents: DatabaseContents | null
    }

export interface DatabaseContents {
  readonly pepperFingerprint: string | null
  readonly adminKeysInForce: number
  readonly bootstrapKeyInForce: boolean
  readonly openCalls: number
}

export interface IntegrityFacts {
  readonly file: string
  readonly bytes: number
  /** Empty: none. */
  readonly problems: readonly string[]
}

/** One message of the examiner, in the order of DataDirFacts. */
export type Observation = {
  readonly [K in keyof DataDirFacts]: readonly [K, DataDirFacts[K]]
}[keyof DataDirFacts]
