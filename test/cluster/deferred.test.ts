import { stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { DeferredRun } from './deferred-run.ts'

after(() => stopPostgres())

test('deferred costs settle exactly once on three nodes that are killed repeatedly', async () => {
  const run = await DeferredRun.start()
  try {
    await run.play(45, 4)
  } finally {
    await run.close()
  }
})
