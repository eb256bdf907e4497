/** What a database is filled with before anything is measured on it. */
export interface FillPlan {
  /** Where the source of the revision is. */
  readonly root: string
  readonly dataDir: string
  readonly pepper: string
  readonly keys: number
  readonly calls: number
}

/** In the data directory: the keys that the load may use, one on each line. */
export const TOLD_KEYS_FILE = 'keys.txt'
