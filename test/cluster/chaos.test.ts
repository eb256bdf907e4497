import { after, test } from '../support/suite.ts'
import { ChaosRun } from './chaos-run.ts'
import { closeConnections } from './send-call.ts'

after(closeConnections)

const FOR_MS = 14_000

test('random faults of nodes and database leave one record per call and an exact ledger', async () => {
  const seed = Date.now() % 1_000_000
  const run = await ChaosRun.start(seed, FOR_MS)
  const done: string[] = []
  try {
    await run.play((deed) => done.push(deed))
  } catch (error) {
    const again = `node test/cluster/long-chaos.ts --seed ${seed} --seconds ${FOR_MS / 1_000} --runs 1`
    throw new Error(`seed ${seed}: ${again}\n${done.join('\n')}\n${run.summary}`, { cause: error })
  } finally {
    await run.close()
  }
})
