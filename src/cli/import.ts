import { createReadStream, readFileSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { unopenedDatabase } from '../installation.ts'
import { InstallationError } from '../kernel/errors.ts'
import { Secret } from '../kernel/secret.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/key-digest.ts'
import { makePrivateDir, openSnapshot } from '../store/data-dir.ts'
import { findRows } from '../store/export-rows.ts'
import { type ImportTarget, importLines, notEmpty } from '../store/import-rows.ts'
import { examples, Failure } from './command.ts'
import { databaseLocation, holdDataDir } from './open-database.ts'
import { createProgress } from './progress.ts'
import { counted, print } from './terminal.ts'

/** Fills an empty store from an export. A failed or killed import leaves the store empty. */
export function register(command: Command): void {
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
    const target = await openTarget(config)
    const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
    const rows = await importLines(lines, pepper, target, (done) => progress.show(done, null))
    progress.end()
    await print(
      `Imported ${counted(rows, 'row')} into ${databaseLocation(config)}. Now run \`tollgate audit\` with the same variables.\n`,
    )
  } finally {
    progress.end()
    lock?.release()
  }
}

async function openTarget(config: Config): Promise<ImportTarget> {
  const { dataDir, databaseUrl } = config
  if (databaseUrl === null) {
    const present = await openSnapshot(config)
    const used = present === null ? null : await findRows(present)
    await present?.close()
    if (used !== null) throw notEmpty(used)
    return (await import('../store/sqlite/import-file.ts')).openImportFile(dataDir)
  }
  const { openImportDatabase } = await import('../store/postgres/import-database.ts')
  return await openImportDatabase(databaseUrl.reveal()).catch((error: Error) => {
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
