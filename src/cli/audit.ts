import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../config.ts'
import { type AuditReport, runAudit } from '../ledger/audit.ts'
import type { AuditCounts, RateAgain } from '../ledger/audited.ts'
import { openBooks as openBooksInDatabase } from '../store/postgres/ledger-snapshot.ts'
import { openBooks as openBooksInFile } from '../store/sqlite/ledger-file.ts'
import { openLedger, placeOfBooks } from './open-ledger.ts'
import { print } from './print.ts'
import { printable } from './printable.ts'
import { createProgress } from './progress.ts'
import { runCommand } from './run-command.ts'

const HELP = `Usage
  tollgate audit   derive every balance, key month, rollup, hold and price again and compare

Reads the data directory (TOLLGATE_DATA_DIR), or the database of TOLLGATE_DATABASE_URL, as it stands at one instant,
while gateways serve from it or not, and writes nothing.

Example
  tollgate audit && echo "the books balance"

Exit codes
  0 no difference   1 a difference or a failure   2 the command line or the configuration is wrong
`

export async function audit(args: readonly string[], rateAgain: RateAgain): Promise<void> {
  const run = async (given: string[]): Promise<void> => {
    parseArgs({ args: given, options: {} })
    const config = readConfig(process.env)
    const report = await auditBooks(config, rateAgain)
    if (report.difference !== null) process.exitCode = 1
    await print(`${describe(report)}These are the books in ${placeOfBooks(config)}.\n`)
  }
  await runCommand({ name: 'audit', help: HELP, run }, args)
}

async function auditBooks(config: Config, rateAgain: RateAgain): Promise<AuditReport> {
  const books = await openLedger(config, { inFile: openBooksInFile, inDatabase: openBooksInDatabase })
  const progress = createProgress('Auditing')
  try {
    return await runAudit(books, rateAgain, progress.show)
  } finally {
    progress.end()
    await books.close()
  }
}

function describe({ counts, monthsAway, difference }: AuditReport): string {
  const away =
    monthsAway.length === 0
      ? ''
      : `The calls of these months were put away, and their sums taken as they stand: ${monthsAway.join(', ')}.\n`
  if (difference === null) return `No difference in ${listed(counts)}.\n${away}`
  return [
    `Difference: ${difference.what}`,
    `  where    ${printable(difference.where)}`,
    `  stored   ${printable(difference.stored)}`,
    `  derived  ${printable(difference.derived)}`,
    `This is the first one; there may be more in ${listed(counts)}.`,
    away,
  ].join('\n')
}

function listed({ calls, keys, months, days, credits }: AuditCounts): string {
  const count = (n: number, noun: string): string =>
    `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`
  return [
    count(calls, 'call'),
    count(keys, 'key'),
    count(months, 'key month'),
    count(days, 'daily rollup'),
    count(credits, 'credit'),
  ].join(', ')
}
