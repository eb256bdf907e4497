import { after, test } from '../../support/suite.ts'
import { assertConserved } from './conservation.ts'
import type { OpenStoreUnderTest, StoreUnderTest } from './fixtures.ts'

export type Promised = (sentence: string, prove: (subject: StoreUnderTest) => Promise<void>) => void

const idle = new Map<OpenStoreUnderTest, StoreUnderTest>()

/** Tests share a store until one fails: opening a SQLite store takes 130 ms of CPU time, emptying it 3 ms. */
export function promisesOf(storeName: string, openStore: OpenStoreUnderTest): Promised {
  after(async () => {
    await idle.get(openStore)?.close()
    idle.delete(openStore)
  })
  return (sentence, prove) => {
    test(`${storeName}: ${sentence}`, async () => {
      const subject = await takeEmpty(openStore)
      try {
        await prove(subject)
        await assertConserved(subject)
      } catch (error) {
        await subject.close()
        throw error
      }
      idle.set(openStore, subject)
    })
  }
}

async function takeEmpty(openStore: OpenStoreUnderTest): Promise<StoreUnderTest> {
  const subject = idle.get(openStore)
  if (subject === undefined) return await openStore()
  idle.delete(openStore)
  await subject.empty()
  return subject
}
