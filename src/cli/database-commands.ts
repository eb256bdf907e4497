import {
  chmodSync,
  copyFileSync,
  createReadStream,
  existsSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { access, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { backup, DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { type Config, configFile, readConfig, readPepper } from '../config/read-config.ts'
import { checkPepper } from '../doctor/local-checks.ts'
import { fileProblem } from '../kernel/errors.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/secrets.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import { makePrivateDir } from '../store/data-dir.ts'
import { exportLines, whyNotExported } from '../store/export-rows.ts'
import { importLines } from '../store/import-rows.ts'
import { type AuditReport, audit } from '../store/operations/audit.ts'
import { examples, Failure } from './command.ts'
import { databaseLocation, lockOrFail, openDatabaseSnapshot, openOrExplain } from './open-database.ts'
import { counted, JSON_OPTION, printResult, shownText } from './terminal.ts'

const AUDIT = 'tollgate audit && echo "no difference"'
const BACKUP = ['tollgate backup /backup/2026-11-18', 'TOLLGATE_DATA_DIR=/backup/2026-11-18 tollgate audit']
const IMPORT = 'TOLLGATE_DATABASE_URL=postgres://… tollgate import tollgate.ndjson'

type Details = readonly [
  argument: string,
  help: string,
  examples: readonly string[],
  Parameters<Command['action']>[0],
]

const COMMANDS: Readonly<Record<string, Details>> = {
  audit: ['', '', [AUDIT], auditDatabase],
  backup: ['<dir>', 'a new or empty directory', BACKUP, backUp],
  export: ['<file>', 'the file to create', ['tollgate export tollgate.ndjson', IMPORT], exportDatabase],
  import: ['<file>', 'a file that tollgate export wrote', [IMPORT], importDatabase],
}

export function register(command: Command): void {
  const [argument, help, lines, action] = COMMANDS[command.name()] as Details
  if (argument !== '') command.argument(argument, help)
  command
    .option(...JSON_OPTION)
    .addHelpText('after', examples(...lines))
    .action(action)
}

interface ResultOptions {
  readonly json?: true
}

/** Reads a snapshot of the database, with or without running gateways, and writes nothing. */
async function auditDatabase(options: ResultOptions): Promise<void> {
  const config = readConfig(process.env)
  const snapshot = await openDatabaseSnapshot(config)
  try {
    const report = await audit(snapshot.query, createRateAgain())
    if (report.difference !== null) process.exitCode = 1
    const database = databaseLocation(config)
    const text = `${describeAudit(report)}Database: ${database}\n`
    const { removedMonths: removed_months, ...sums } = report
    await printResult(options, { object: 'audit', database, ...sums, removed_months }, text)
    const { state, found, todo } = await checkPepper({ config, snapshot: Promise.resolve(snapshot) })
    if (state === 'problem') process.stderr.write(`Warning: ${found}. ${todo}\n`)
  } finally {
    await snapshot.close()
  }
}

function describeAudit({ calls, credits, removedMonths, difference }: AuditReport): string {
  const all = `${counted(calls, 'call')} and ${counted(credits, 'credit')}`
  const given =
    removedMonths.length === 0
      ? ''
      : `Calls of ${removedMonths.join(', ')} were removed (requests.keep_months): their sums were taken as recorded.\n`
  if (difference === null) return `No difference in ${all}.\n${given}`
  return [
    `Difference: ${difference.what}`,
    `  where    ${shownText(difference.where)}`,
    `  stored   ${shownText(difference.stored)}`,
    `  derived  ${shownText(difference.derived)}`,
    `This is the first difference. There may be others in ${all}.\n`,
  ].join('\n')
}

/** Copies an installation. Its gateway may be running. The copy can be used as a data directory. */
async function backUp(dir: string, options: ResultOptions): Promise<void> {
  const config = readConfig(process.env)
  // Without a database, TOLLGATE_DATA_DIR is wrong, and the copy would only look like a backup.
  await (await openDatabaseSnapshot(config)).close()
  makeEmptyDir(dir)
  const copied: string[] = []
  try {
    if (config.databaseUrl === null)
      for (const name of ['tollgate.db', 'bodies.db']) await copyDatabase(config.dataDir, dir, name, copied)
    copyFiles(config, dir, copied)
  } catch (error) {
    for (const name of readdirSync(dir)) rmSync(join(dir, name))
    throw error
  }
  const text = `Copied ${copied.join(', ')} to ${dir}.\n${adviseNextStep(config, dir)}`
  await printResult(options, { object: 'backup', directory: dir, files: copied }, text)
}

function makeEmptyDir(dir: string): void {
  try {
    if (existsSync(dir) && readdirSync(dir).length > 0)
      throw new Failure(`${dir} is not empty. Name a new directory for each backup.`)
    makePrivateDir(dir)
    chmodSync(dir, 0o700)
  } catch (error) {
    throw error instanceof Failure ? error : new Failure(`${dir} cannot be used: ${fileProblem(error)}.`)
  }
}

/** Copies the whole database in one step: a copy in several steps starts again when a writer commits. */
async function copyDatabase(from: string, to: string, name: string, copied: string[]): Promise<void> {
  if (!existsSync(join(from, name))) return
  const source = new DatabaseSync(join(from, name), { readOnly: true, timeout: 5_000 })
  try {
    await backup(source, join(to, name), { rate: 2 ** 31 - 1 })
  } finally {
    source.close()
  }
  copied.push(name)
}

function copyFiles(config: Config, dir: string, copied: string[]): void {
  const copy = (from: string | null, name: string): void => {
    if (from === null || !existsSync(from)) return
    copyFileSync(from, join(dir, name))
    chmodSync(join(dir, name), 0o600)
    copied.push(name)
  }
  if (config.pepper === null) copy(join(config.dataDir, 'pepper'), 'pepper')
  else {
    writeFileSync(join(dir, 'pepper'), `${config.pepper.reveal()}\n`, { mode: 0o600 })
    copied.push('pepper')
  }
  copy(configFile(process.env), 'tollgate.json')
  copy(config.prices?.file ?? null, `prices-${basename(config.prices?.file ?? '')}`)
}

function adviseNextStep({ databaseUrl }: Config, dir: string): string {
  if (databaseUrl === null)
    return `Check the copy with: TOLLGATE_DATA_DIR=${dir} tollgate audit\nThe copy does not contain environment variables.\n`
  return (
    'The copy does not contain the PostgreSQL database. Dump it with this command, also while the gateway runs:\n' +
    `  pg_dump --format=custom --file=${join(dir, 'tollgate.dump')} "$TOLLGATE_DATABASE_URL"\n` +
    'The copy does not contain environment variables.\n'
  )
}

/** Writes all tables to a file, for `tollgate import`. The gateway must be stopped. */
async function exportDatabase(path: string, options: ResultOptions): Promise<void> {
  const config = readConfig(process.env)
  const snapshot = await openDatabaseSnapshot(config)
  const lock = lockOrFail(config)
  try {
    const reason = await whyNotExported(snapshot)
    if (reason !== null) throw new Failure(reason)
    const file = await open(path, 'wx', 0o600).catch((error: Error) => {
      throw new Failure(`${path} cannot be created: ${fileProblem(error)}. Name a new file.`)
    })
    try {
      const rows = await exportLines(snapshot, (lines) => file.write(`${lines.join('\n')}\n`))
      await file.sync()
      const text = `Exported ${counted(rows, 'row')} to ${path}. The import needs the same pepper, so copy the file "pepper" too.\n`
      await printResult(options, { object: 'export', file: path, rows }, text)
    } finally {
      await file.close()
    }
  } finally {
    lock?.release()
    await snapshot.close()
  }
}

/** Fills an empty PostgreSQL database from an export. If the import fails or is killed, the database stays empty. */
async function importDatabase(path: string, options: ResultOptions): Promise<void> {
  const config = readConfig(process.env)
  const { databaseUrl } = config
  if (databaseUrl === null)
    throw new Failure(`An import fills an empty PostgreSQL database. Name it, for example: ${IMPORT}`)
  await access(path).catch((error: Error) => {
    throw new Failure(`${path} cannot be read: ${fileProblem(error)}.`)
  })
  const pepper = readPepper(config)
  if (pepper === null)
    throw new Failure(
      `There is no pepper in ${config.dataDir}. Copy the file "pepper" of the exported installation there, or set ` +
        'TOLLGATE_PEPPER.',
    )
  makePrivateDir(config.dataDir)
  const lock = lockOrFail(config)
  try {
    const { importIntoDatabase } = await import('../store/postgres/import-database.ts')
    const importInto = await openOrExplain(config, importIntoDatabase(databaseUrl.reveal()))
    const fingerprint = pepperFingerprint(createKeyDigest(pepper))
    const rows = await importInto((insert) => {
      // Created here, because readline drops lines that arrive before there is a reader.
      const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
      return importLines(lines, fingerprint, insert)
    })
    const database = databaseLocation(config)
    const text = `Imported ${counted(rows, 'row')} into ${database}. Now run \`tollgate audit\` with the same variables.\n`
    await printResult(options, { object: 'import', database, rows }, text)
  } finally {
    lock?.release()
  }
}
