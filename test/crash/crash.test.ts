import { closeAfter, test } from '../support/suite.ts'
import { CrashRun } from './crash-run.ts'

const run = await CrashRun.start()
closeAfter(run)

for (const point of ['admitted', 'before_send', 'first_byte', 'before_settle', 'settled'] as const) {
  test(`kill -9 at "${point}" loses no record and no charge, and leaves nothing held`, async () => {
    await run.dieAt(point, 3, 4)
    // The next run starts with these files and is killed in turn.
    await run.dieAt(point, 30, 8)
    await run.recoverAndCheck()
  })
}
