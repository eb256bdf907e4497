import { parseArgs } from 'node:util'
import { stopPostgres } from '../support/postgres.ts'
import { DeferredRun } from './deferred-run.ts'

/** `npm run test:long -- deferred [--objects N] [--kills K]`: N objects on three nodes, with K kills. */
const { values } = parseArgs({
  options: { objects: { type: 'string', default: '1000' }, kills: { type: 'string', default: '30' } },
})
const run = await DeferredRun.start((deed) => process.stdout.write(`  ${deed}\n`))
try {
  await run.play(Number(values.objects), Number(values.kills))
  process.stdout.write(`${values.objects} objects: each was settled once, at what upstream says of it\n`)
} finally {
  await run.close()
  await stopPostgres()
}
