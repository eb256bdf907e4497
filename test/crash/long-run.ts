import { startPostgres } from '../support/postgres.ts'
import { testStore } from '../support/test-store.ts'
import { CrashRun } from './crash-run.ts'

/** `npm run test:crash [seed] [kills]`: by default 200 kills. The printed seed repeats points and counts. */
const server = testStore === 'postgres' ? await startPostgres() : null
if (server !== null) process.env['TEST_POSTGRES_URL'] = server.url
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000)
const kills = Number(process.argv[3] ?? 200)
process.stdout.write(`seed ${seed}, ${kills} kills\n`)

let state = seed
const random = (below: number): number => {
  // Park and Miller's generator: small, and the same everywhere.
  state = (state * 48_271) % 2_147_483_647
  return state % below
}
state = (seed % 2_147_483_646) + 1

const points = ['admitted', 'before_send', 'first_byte', 'before_settle', 'settled']
const run = await CrashRun.start()
for (let kill = 1; kill <= kills; kill++) {
  const parallel = 1 + random(16)
  if (random(2) === 0) await run.dieAt(points[random(points.length)] ?? 'settled', 1 + random(40), parallel)
  else await run.dieAfter(random(60), parallel)
  await run.recoverAndCheck()
  if (process.stdout.isTTY) process.stdout.write(`\r${kill}/${kills}  ${run.summary} `)
  else if (kill % 20 === 0) process.stdout.write(`${kill}/${kills}  ${run.summary}\n`)
}
process.stdout.write(
  `\n${kills} kills, ${run.summary}: every upstream call has one record, every answered call is charged\n`,
)
await run.close()
await server?.stop()
