/** The content of a database before anything is measured on it. */
export interface FillContent {
  /** All keys, spread evenly over the accounts. */
  readonly keys: number
  /** The default account and so many others; none unless given. */
  readonly otherAccounts?: number
  /** So many people own all keys, each as many as the others; none unless given. */
  readonly people?: number
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

/** The id of an account; the first is the default account. */
export const accountId = (index: number): string =>
  index === 0 ? 'default' : `acct_${String(index).padStart(26, '0')}`

export const personId = (index: number): string => `per_${String(index).padStart(26, '0')}`

/** The file in the data directory with the keys that the load may use, one on each line. */
export const SECRET_KEYS_FILE = 'keys.txt'
