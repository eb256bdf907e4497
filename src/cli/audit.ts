import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, readConfig } from '../config.ts'
import { type AuditCounts, type AuditReport, runAudit } from '../ledger/audit.ts'
import type { RateAgain } from '../ledger/audited.ts'
import { openBooks } from '../store/sqlite/audit-reader.ts'
import { printable } from './printable.ts'
import { createProgress } from './progress.ts'

const USAGE = `Usage
  tollgate audit   derive every balance, key month, rollup, hold and price again and compare

Reads the data directory (TOLLGATE_DATA_DIR), beside a running gateway or without one, and writes nothing.
Exit codes: 0 no difference, 1 a difference or a failure, 2 the command line or the configuration is wrong.
`

export async function audit(args: readonly string[], rateAgain: RateAgain): Promise<void> {
  try {
    const { values } = parseArgs({ args: [...args], options: { help: { type: 'boolean', short: 'h' } } })
    if (values.help === true) {
      process.stdout.write(USAGE)
      return
    }
    const report = auditDataDir(readConfig(process.env).dataDir, rateAgain)
    process.stdout.write(describe(report))
    if (report.difference !== null) process.exitCode = 1
  } catch (error) {
    if (error instanceof TypeError && 'code' in error) {
      process.stderr.write(`tollgate audit: ${error.message}\n\n${USAGE}`)
    } else if (error instanceof ConfigError) {
      process.stderr.write(`tollgate: ${error.message}\n`)
    } else throw error
    process.exitCode = 2
  }
}

function auditDataDir(dataDir: string, rateAgain: RateAgain): AuditReport {
  const books = openBooks(join(dataDir, 'tollgate.db'))
  // A wrong folder must not pass for books in order.
  if (books === null) throw new ConfigError([`TOLLGATE_DATA_DIR: there are no books in ${dataDir}`])
  const progress = createProgress('Auditing')
  try {
    return runAudit(books, rateAgain, progress.show)
  } finally {
    progress.end()
    books.close()
  }
}

function describe({ counts, difference }: AuditReport): string {
  if (difference === null) return `No difference in ${listed(counts)}.\n`
  return [
    `Difference: ${difference.what}`,
    `  where    ${printable(difference.where)}`,
    `  stored   ${printable(difference.stored)}`,
    `  derived  ${printable(difference.derived)}`,
    `This is the first one; there may be more in ${listed(counts)}.`,
    '',
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
