/** The content of a database before anything is measured on it. */
export interface FillContent {
  readonly keys: number
  /** Every key has its figures of the month and of the day. */
  readonly allUsedToday: boolean
  readonly calls: number
}

export interface FillPlan extends FillContent {
  /** The folder of the revision's source. */
  readonly root: string
  readonly dataDir: string
  readonly pepper: string
}

/** The file in the data directory with the keys that the load may use, one on each line. */
export const SECRET_KEYS_FILE = 'keys.txt'
