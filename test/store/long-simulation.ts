import { stopPostgres } from '../support/postgres.ts'
import { testStore } from '../support/test-store.ts'
import { rulesOf, SimulationRun } from './conformance/simulation-run.ts'
import { openMortalPostgres } from './postgres-under-test.ts'
import { openMortalSqlite } from './sqlite-under-test.ts'

/** `node test/store/long-simulation.ts [seed] [steps]`; TEST_STORE=postgres selects PostgreSQL. */
const STEPS_PER_RUN = 500

const first = Number(process.argv[2] ?? Date.now() % 1_000_000)
const stepsMax = Number(process.argv[3] ?? 20_000)
process.stdout.write(`seed ${first}, ${stepsMax} steps\n`)

const answers = new Map<string, number>()
let seed = first
for (let steps = 0; steps < stepsMax; seed++) {
  const here = Math.min(STEPS_PER_RUN, stepsMax - steps)
  const subject = await (testStore === 'sqlite' ? openMortalSqlite() : openMortalPostgres())
  try {
    const run = new SimulationRun(subject, seed)
    await run.play(here)
    for (const [answer, count] of run.tally) answers.set(answer, (answers.get(answer) ?? 0) + count)
  } finally {
    await subject.close()
  }
  steps += here
  const line = `${steps}/${stepsMax}  seed ${seed}: ${rulesOf(seed).words}`
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${line}`)
  else process.stdout.write(`${line}\n`)
}
process.stdout.write('\nevery answer and every figure agreed; the answers were\n')
for (const [answer, count] of [...answers].toSorted((a, b) => b[1] - a[1])) {
  process.stdout.write(`${String(count).padStart(8)}  ${answer}\n`)
}
await stopPostgres()
