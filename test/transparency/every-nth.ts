import { testStore } from '../support/test-store.ts'

/** Of cases in a row every how many are tried, from one that chance chooses. */
export interface EveryNth {
  readonly step: number
  readonly first: number
  /** For the name of a test whose cases are bytes. */
  readonly bytes: string
}

/** On the second store the same calls show that it makes no difference: a part of the cases is enough for that. */
export function everyNth(nth: number): EveryNth {
  const step = testStore === 'sqlite' ? nth : 23
  return {
    step,
    first: Math.floor(Math.random() * step),
    bytes: step === 1 ? 'every byte' : `one in ${step} bytes`,
  }
}
