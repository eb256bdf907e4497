import { closeAfter, test } from '../support/suite.ts'
import { JamRun } from './jam-run.ts'

const MB = 1_000_000
const run = await JamRun.start({
  callsPerKeyMax: 60,
  slowBodies: 100,
  hostileBodyBytes: 2 * MB,
  uploadBytes: 6 * MB,
})
closeAfter(run)

test('under all attacks at once no call of a well-behaved key fails or waits for attackers', async () => {
  await run.play(1_500)
})
