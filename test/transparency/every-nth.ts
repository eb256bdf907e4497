import { testStore } from '../support/test-store.ts'

/** Every n-th of cases in a row is tried, from a first case that chance chooses. */
export interface EveryNth {
  readonly step: number
  readonly first: number
  /** The words for the name of a test whose cases are bytes. */
  readonly bytes: string
}

/** On PostgreSQL the calls only show that the store makes no difference: a part of the cases is enough for that. */
export function everyNth(nth: number): EveryNth {
  const step = testStore === 'sqlite' ? nth : 23
  return {
    step,
    first: Math.floor(Math.random() * step),
    bytes: step === 1 ? 'every byte' : `one in ${step} bytes`,
  }
}
