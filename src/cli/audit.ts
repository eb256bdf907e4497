import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { createRateAgain } from '../pricing/rate-again.ts'
import { type AuditReport, audit } from '../store/operations/audit.ts'
import { examples } from './command.ts'
import { databaseLocation, openDatabaseSnapshot } from './open-database.ts'
import { createProgress } from './progress.ts'
import { counted, print, shownText } from './terminal.ts'

/** Reads the database as of one instant, beside running gateways or without one, and writes nothing. */
export function register(command: Command): void {
  command.addHelpText('after', examples('tollgate audit && echo "no difference"')).action(async () => {
    const config = readConfig(process.env)
    const snapshot = await openDatabaseSnapshot(config)
    const progress = createProgress('Auditing')
    try {
      const report = await audit(snapshot.ask, createRateAgain(), progress.show)
      progress.end()
      if (report.difference !== null) process.exitCode = 1
      await print(`${describe(report)}The database is ${databaseLocation(config)}.\n`)
    } finally {
      progress.end()
      await snapshot.close()
    }
  })
}

function describe({ calls, credits, difference }: AuditReport): string {
  const all = `${counted(calls, 'call')} and ${counted(credits, 'credit')}`
  if (difference === null) return `No difference in ${all}.\n`
  return [
    `Difference: ${difference.what}`,
    `  where    ${shownText(difference.where)}`,
    `  stored   ${shownText(difference.stored)}`,
    `  derived  ${shownText(difference.derived)}`,
    `This is the first one; there may be more in ${all}.\n`,
  ].join('\n')
}
