import {
  chmodSync,
  copyFileSync,
  createReadStream,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { access, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { backup, DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { type Config, configFile, readConfig } from '../config.ts'
import { unopenedDatabase } from '../installation.ts'
import { InstallationError } from '../kernel/errors.ts'
import { Secret } from '../kernel/secret.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/secrets.ts'
import { createRateAgain } from '../pricing/load-book.ts'
import { makePrivateDir } from '../store/data-dir.ts'
import { exportLines, whyNotExported } from '../store/export-rows.ts'
import { type ImportInto, importLines } from '../store/import-rows.ts'
import { type AuditReport, audit, countCalls } from '../store/operations/audit.ts'
import { examples, Failure } from './command.ts'
import { databaseLocation, holdDataDir, openDatabaseSnapshot } from './open-database.ts'
import { counted, createProgress, print, shownText } from './terminal.ts'

/** Commands on the whole database, on the host: audit, backup, export and import. */

// audit

/** Reads a snapshot of the database, with or without running gateways, and writes nothing. */
export function registerAudit(command: Command): void {
  command.addHelpText('after', examples('tollgate audit && echo "no difference"')).action(async () => {
    const config = readConfig(process.env)
    const snapshot = await openDatabaseSnapshot(config)
    const progress = createProgress('Auditing')
    try {
      const report = await audit(snapshot.ask, createRateAgain(), progress.show)
      progress.end()
      if (report.difference !== null) process.exitCode = 1
      await print(`${describeAudit(report)}Database: ${databaseLocation(config)}\n`)
    } finally {
      progress.end()
      await snapshot.close()
    }
  })
}

function describeAudit({ calls, credits, difference }: AuditReport): string {
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

// backup

/** Copies an installation, also while its gateway runs. The copy is a data directory that can be audited and served from. */
export function registerBackup(command: Command): void {
  command
    .argument('<dir>', 'a new or empty directory')
    .addHelpText(
      'after',
      examples('tollgate backup /backup/2026-11-18', 'TOLLGATE_DATA_DIR=/backup/2026-11-18 tollgate audit'),
    )
    .action(backUp)
}

async function backUp(dir: string): Promise<void> {
  const config = readConfig(process.env)
  // A directory without a database means a wrong TOLLGATE_DATA_DIR: do not create something that looks like a backup.
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
  await print(`Copied ${copied.join(', ')} to ${dir}.\n${nextStep(config, dir)}`)
}

function makeEmptyDir(dir: string): void {
  if (existsSync(dir) && readdirSync(dir).length > 0)
    throw new Failure(`${dir} is not empty. Name a new directory for each backup.`)
  makePrivateDir(dir)
  chmodSync(dir, 0o700)
}

/** Copies the whole database in one step, as a snapshot: writers neither wait nor restart it. */
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

function nextStep({ databaseUrl }: Config, dir: string): string {
  if (databaseUrl === null)
    return `Check it with: TOLLGATE_DATA_DIR=${dir} tollgate audit\nEnvironment variables are not in it.\n`
  return (
    'The database is PostgreSQL. Copy it with its own tools, while the gateway runs or not:\n' +
    `  pg_dump --format=custom --file=${join(dir, 'tollgate.dump')} "$TOLLGATE_DATABASE_URL"\n` +
    'Environment variables are not in it.\n'
  )
}

// export

/** Writes all tables to a file, for `tollgate import` into the other kind of store. The gateway must be stopped. */
export function registerExport(command: Command): void {
  command
    .argument('<file>', 'the file to create')
    .addHelpText(
      'after',
      examples(
        'tollgate export tollgate.ndjson',
        'TOLLGATE_DATABASE_URL=postgres://… tollgate import tollgate.ndjson',
      ),
    )
    .action(exportStore)
}

async function exportStore(path: string): Promise<void> {
  const config = readConfig(process.env)
  const snapshot = await openDatabaseSnapshot(config)
  const lock = holdDataDir(config)
  const progress = createProgress('Exporting')
  try {
    const reason = await whyNotExported(snapshot)
    if (reason !== null) throw new Failure(reason)
    const calls = await countCalls(snapshot.ask)
    const file = await open(path, 'wx', 0o600).catch((error: Error) => {
      throw new Failure(`${path} cannot be created: ${error.message}`)
    })
    let rows = 0
    try {
      const lines = exportLines(snapshot, (done) => {
        rows = done
        progress.show(done, Math.max(calls, done))
      })
      for await (const some of lines) if (some.length > 0) await file.write(`${some.join('\n')}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    progress.end()
    await print(
      `Exported ${counted(rows, 'row')} to ${path}. Import it with the same pepper: copy the file "pepper" too.\n`,
    )
  } finally {
    progress.end()
    lock?.release()
    await snapshot.close()
  }
}

// import

/** Fills an empty store from an export. A failed or killed import leaves the store empty. */
export function registerImport(command: Command): void {
  command
    .argument('<file>', 'a file of tollgate export')
    .addHelpText('after', examples('TOLLGATE_DATABASE_URL=postgres://… tollgate import tollgate.ndjson'))
    .action(importStore)
}

async function importStore(path: string): Promise<void> {
  const config = readConfig(process.env)
  await access(path).catch((error: Error) => {
    throw new Failure(`${path} cannot be read: ${error.message}`)
  })
  const pepper = pepperFingerprint(createKeyDigest(readPepper(config)))
  makePrivateDir(config.dataDir)
  const lock = holdDataDir(config)
  const progress = createProgress('Importing')
  try {
    const importInto = await openTarget(config)
    const rows = await importInto((insert) => {
      // Created here, because readline drops lines that arrive before there is a reader.
      const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
      return importLines(lines, pepper, insert, (done) => progress.show(done, null))
    })
    progress.end()
    await print(
      `Imported ${counted(rows, 'row')} into ${databaseLocation(config)}. Now run \`tollgate audit\` with the same variables.\n`,
    )
  } finally {
    progress.end()
    lock?.release()
  }
}

async function openTarget({ dataDir, databaseUrl }: Config): Promise<ImportInto> {
  if (databaseUrl === null) return (await import('../store/sqlite/import-file.ts')).importIntoFile(dataDir)
  const { importIntoDatabase } = await import('../store/postgres/import-database.ts')
  const importInto = importIntoDatabase(databaseUrl.reveal())
  return (work) =>
    importInto(work).catch((error: Error) => {
      throw error instanceof InstallationError ? error : unopenedDatabase(databaseUrl, error)
    })
}

function readPepper({ pepper, dataDir }: Config): Secret {
  if (pepper !== null) return pepper
  const file = join(dataDir, 'pepper')
  try {
    return new Secret(readFileSync(file, 'utf8').trim())
  } catch (error) {
    throw new Failure(
      `The pepper of the exported installation is needed, and ${file} cannot be read: ${(error as Error).message}. ` +
        'Copy it there, or set TOLLGATE_PEPPER.',
    )
  }
}
