import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/key-digest.ts'
import { isOpenToOthers } from '../store/private-dir.ts'
import { counted } from './amounts.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'
import type { DirectoryFacts, KnownBooks } from './data-dir-facts.ts'

interface Facts {
  readonly directory?: DirectoryFacts | undefined
  readonly database?: KnownBooks | undefined
}

const SAME_PEPPER =
  'Set TOLLGATE_PEPPER to the same value on every node; the first may have left it in the file "pepper" of its data ' +
  'directory.'

export function checkDirectory(dataDir: string, directory: DirectoryFacts): Check {
  const name = 'data_directory'
  if (directory.kind === 'unusable') {
    return problem(
      name,
      `${dataDir} cannot be used: ${directory.reason}`,
      'Set TOLLGATE_DATA_DIR to a folder that the gateway can read and write.',
    )
  }
  if (directory.kind === 'missing') {
    return directory.aboveWritable
      ? warning(
          name,
          `${dataDir} is not there yet`,
          'The first start creates it. If the gateway has run before, set TOLLGATE_DATA_DIR to the folder it used.',
        )
      : problem(
          name,
          `${dataDir} is not there, and ${directory.above} cannot be written to`,
          'Create it for the user that the gateway runs as, with mode 700.',
        )
  }
  if (!directory.writable) {
    return problem(
      name,
      `${dataDir} cannot be written to by this user`,
      'Give it to the user that the gateway runs as, and run the doctor as that user.',
    )
  }
  if (isOpenToOthers(directory.mode)) {
    return warning(
      name,
      `${dataDir} is open to other users (mode ${octal(directory.mode)}), and with it who called what`,
      `chmod 700 ${dataDir}`,
    )
  }
  return ok(name, `${dataDir}, writable, mode ${octal(directory.mode)}`)
}

export function checkPepper(config: Config, { directory, database }: Facts): Check {
  const name = 'pepper'
  const known = contentsOf(database)?.pepperFingerprint ?? null
  const file = join(config.dataDir, 'pepper')
  if (config.pepper !== null) {
    const own = pepperFingerprint(createKeyDigest(config.pepper))
    if (known !== null && known !== own) return otherPepper('TOLLGATE_PEPPER', config)
    return ok(name, 'from TOLLGATE_PEPPER')
  }
  const isHere = directory?.kind === 'there' && directory.pepper.kind !== 'missing'
  if (config.databaseUrl !== null && known !== null && !isHere) {
    return problem(
      name,
      'this node has none, and without that of the others none of the keys in the database is recognised',
      SAME_PEPPER,
    )
  }
  if (directory?.kind !== 'there') return skipped(name, 'the first start makes one')
  const { pepper } = directory
  if (pepper.kind === 'unreadable') {
    return problem(
      name,
      `${file} cannot be read: ${pepper.reason}`,
      'Give it to the user that the gateway runs as.',
    )
  }
  if (pepper.kind === 'missing') {
    if (known === null) return ok(name, 'not there yet: the next start makes one')
    return problem(
      name,
      `${file} is lost, and without it none of the keys in the database is recognised`,
      'Restore it from its backup, or set TOLLGATE_PEPPER to what stood in it.',
    )
  }
  if (isOpenToOthers(pepper.mode)) {
    return problem(
      name,
      `${file} can be read by other users (mode ${octal(pepper.mode)})`,
      `chmod 600 ${file}`,
    )
  }
  if (known !== null && known !== pepper.fingerprint) return otherPepper(file, config)
  return ok(name, `in ${file}, private${known === null ? '' : ', the one that the keys were made with'}`)
}

export function checkAdminKey(config: Config, { directory, database }: Facts): Check {
  const name = 'admin_key'
  const file = join(config.dataDir, 'admin-key')
  const fileMode = directory?.kind === 'there' ? directory.adminKeyMode : null
  if (fileMode !== null && isOpenToOthers(fileMode)) {
    return problem(name, `${file} can be read by other users (mode ${octal(fileMode)})`, `chmod 600 ${file}`)
  }
  if (config.adminKey !== null) return ok(name, 'from TOLLGATE_ADMIN_KEY')
  const contents = contentsOf(database)
  if (contents === null) {
    return database?.kind === 'broken'
      ? skipped(name, 'the database cannot be read')
      : ok(name, 'none yet: the first start makes one and prints it')
  }
  if (contents.adminKeysInForce > 0) return ok(name, `${counted(contents.adminKeysInForce, 'key')} in force`)
  if (contents.bootstrapKeyInForce && isServed(database))
    return ok(name, "the running gateway's TOLLGATE_ADMIN_KEY")
  return warning(
    name,
    contents.bootstrapKeyInForce
      ? 'the only one in force came from TOLLGATE_ADMIN_KEY, which is not set here'
      : 'none is in force, so nobody can manage keys',
    'Make one with `tollgate admin-key create`, or set TOLLGATE_ADMIN_KEY. The next start makes one as well.',
  )
}

function otherPepper(what: string, { databaseUrl }: Config): Check {
  return problem(
    'pepper',
    `the keys in the database were made with another pepper than ${what}: none of them is recognised`,
    databaseUrl === null
      ? 'Restore the file "pepper" of the data directory from its backup, or set TOLLGATE_PEPPER to the former value.'
      : SAME_PEPPER,
  )
}

function contentsOf(database: KnownBooks | undefined) {
  return database?.kind === 'open' ? database.contents : null
}

function isServed(database: KnownBooks | undefined): boolean {
  return database?.kind === 'open' && database.serving === true
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, '0')
}
