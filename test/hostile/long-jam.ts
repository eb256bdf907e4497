import { limits } from '../../src/kernel/limits.ts'
import { JamRun } from './jam-run.ts'

/** `npm run test:long -- jam [seconds]`: all attacks at once on one gateway, by default for a minute. */
const seconds = Number(process.argv[2] ?? 60)
const MB = 1_000_000
const run = await JamRun.start({
  callsPerKeyMax: limits.callsInFlightPerKeyMax,
  slowBodies: 600,
  hostileBodyBytes: 30 * MB,
  uploadBytes: 40 * MB,
})
try {
  await run.play(seconds * 1_000, (progress) => process.stdout.write(`${progress}\n`))
  process.stdout.write(`${run.summary}: none of them failed, none waited for another key's work\n`)
} finally {
  process.stdout.write(`${run.report()}\n`)
  await run.close()
}
