import { test } from '../../support/suite.ts'
import { assertConserved } from './conservation.ts'
import type { OpenStoreUnderTest, StoreUnderTest } from './fixtures.ts'

export type Promised = (sentence: string, prove: (subject: StoreUnderTest) => Promise<void>) => void

/** A test with a store of its own, after which the ledger must balance, whatever the test was about. */
export function promisesOf(storeName: string, openStore: OpenStoreUnderTest): Promised {
  return (sentence, prove) => {
    test(`${storeName}: ${sentence}`, async () => {
      const subject = await openStore()
      try {
        await prove(subject)
        await assertConserved(subject)
      } finally {
        await subject.close()
      }
    })
  }
}
