import { type Config, readConfig } from '../config.ts'
import { type AuditReport, runAudit } from '../ledger/audit.ts'
import type { AuditCounts } from '../ledger/audited.ts'
import { createRateAgain } from '../pricing/rate-again.ts'
import { openBooks as openBooksInFile } from '../store/sqlite/ledger-file.ts'
import { openLedger, placeOfBooks } from './books.ts'
import { defineCommand } from './command.ts'
import { createProgress } from './progress.ts'
import { counted, print, shownText } from './terminal.ts'

export const command = defineCommand({
  name: 'audit',
  usage: 'tollgate audit   derive every balance, key month, rollup, hold and price again and compare',
  about: `Reads the data directory (TOLLGATE_DATA_DIR), or the database of TOLLGATE_DATABASE_URL, as it stands at one instant,
while gateways serve from it or not, and writes nothing.`,
  options: {},
  examples: ['tollgate audit && echo "the books balance"'],
  exitCodes:
    '0 no difference   1 a difference or a failure   2 the command line or the configuration is wrong',
  async run() {
    const config = readConfig(process.env)
    const report = await auditBooks(config)
    if (report.difference !== null) process.exitCode = 1
    await print(`${describe(report)}These are the books in ${placeOfBooks(config)}.\n`)
  },
})

async function auditBooks(config: Config): Promise<AuditReport> {
  const books = await openLedger(config, {
    inFile: openBooksInFile,
    inDatabase: async (url) => (await import('../store/postgres/ledger-snapshot.ts')).openBooks(url),
  })
  const progress = createProgress('Auditing')
  try {
    return await runAudit(books, createRateAgain(), progress.show)
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
    `  where    ${shownText(difference.where)}`,
    `  stored   ${shownText(difference.stored)}`,
    `  derived  ${shownText(difference.derived)}`,
    `This is the first one; there may be more in ${listed(counts)}.`,
    away,
  ].join('\n')
}

function listed({ calls, keys, months, days, credits }: AuditCounts): string {
  return [
    counted(calls, 'call'),
    counted(keys, 'key'),
    counted(months, 'key month'),
    counted(days, 'daily rollup'),
    counted(credits, 'credit'),
  ].join(', ')
}
