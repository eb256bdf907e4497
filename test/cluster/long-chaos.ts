import { parseArgs } from 'node:util'
import { ChaosRun } from './chaos-run.ts'
import { closeConnections } from './send-call.ts'

/** `npm run test:chaos -- [--seed N] [--minutes M] [--seconds S] [--runs R]`: a seed repeats its plan. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    minutes: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '45' },
    runs: { type: 'string', default: '1000' },
  },
})
const first = Number(values.seed ?? Date.now() % 1_000_000)
const runs = Number(values.runs)
const forMs = Number(values.seconds) * 1_000
const endMs = performance.now() + Number(values.minutes) * 60_000

for (let i = 0; i < runs && performance.now() < endMs; i++) {
  const seed = first + i
  process.stdout.write(`seed ${seed}, ${values.seconds} s\n`)
  const run = await ChaosRun.start(seed, forMs)
  try {
    await run.play((deed) => process.stdout.write(`  ${deed}\n`))
    process.stdout.write(`seed ${seed}: ${run.summary}: the ledger is exact\n`)
  } catch (error) {
    process.stdout.write(`seed ${seed} FAILED: ${run.summary}\n`)
    throw error
  } finally {
    await run.close()
  }
}
await closeConnections()
