import { chmodSync, copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { type Config, configFile, readConfig } from '../config.ts'
import { makePrivateDir } from '../store/data-dir.ts'
import { examples, Failure } from './command.ts'
import { openDatabaseSnapshot } from './open-database.ts'
import { print } from './terminal.ts'

/** Copies an installation, also while its gateway runs. The copy is a data directory that can be audited and served. */
export function register(command: Command): void {
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
  // A directory without a database is a wrong TOLLGATE_DATA_DIR, and no backup of it may look like one.
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

/** The whole database in one step: it sees one instant, and writers need not wait or restart it. */
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
