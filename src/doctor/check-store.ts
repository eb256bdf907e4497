import { basename, join } from 'node:path'
import type { Config } from '../config.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/key-digest.ts'
import { isOpenToOthers } from '../store/data-dir.ts'
import type { Examination } from './ask-examiner.ts'
import { type Check, counted, inBytes, inTime, verdicts } from './check.ts'
import type { DatabaseFacts, DirectoryFacts, IntegrityFacts, KnownBooks } from './examiner.ts'

interface Facts {
  readonly directory?: DirectoryFacts | undefined
  readonly database?: KnownBooks | undefined
}

const SAME_PEPPER =
  'Set TOLLGATE_PEPPER to the same value on every node; the first may have left it in the file "pepper" of its data ' +
  'directory.'

export function checkDirectory(dataDir: string, directory: DirectoryFacts): Check {
  const { ok, warning, problem } = verdicts('data_directory')
  if (directory.kind === 'unusable')
    return problem(
      `${dataDir} cannot be used: ${directory.reason}`,
      'Set TOLLGATE_DATA_DIR to a folder that the gateway can read and write.',
    )
  if (directory.kind === 'missing') {
    return directory.aboveWritable
      ? warning(
          `${dataDir} is not there yet`,
          'The first start creates it. If the gateway has run before, set TOLLGATE_DATA_DIR to the folder it used.',
        )
      : problem(
          `${dataDir} is not there, and ${directory.above} cannot be written to`,
          'Create it for the user that the gateway runs as, with mode 700.',
        )
  }
  if (!directory.writable)
    return problem(
      `${dataDir} cannot be written to by this user`,
      'Give it to the user that the gateway runs as, and run the doctor as that user.',
    )
  if (isOpenToOthers(directory.mode))
    return warning(
      `${dataDir} is open to other users (mode ${octal(directory.mode)}), and with it who called what`,
      `chmod 700 ${dataDir}`,
    )
  return ok(`${dataDir}, writable, mode ${octal(directory.mode)}`)
}

export function checkPepper(config: Config, { directory, database }: Facts): Check {
  const { ok, skipped, problem } = verdicts('pepper')
  const known = contentsOf(database)?.pepperFingerprint ?? null
  const file = join(config.dataDir, 'pepper')
  if (config.pepper !== null) {
    const own = pepperFingerprint(createKeyDigest(config.pepper))
    if (known !== null && known !== own) return otherPepper('TOLLGATE_PEPPER', config)
    return ok('from TOLLGATE_PEPPER')
  }
  const isHere = directory?.kind === 'there' && directory.pepper.kind !== 'missing'
  if (config.databaseUrl !== null && known !== null && !isHere)
    return problem(
      'this node has none, and without that of the others none of the keys in the database is recognised',
      SAME_PEPPER,
    )
  if (directory?.kind !== 'there') return skipped('the first start makes one')
  const { pepper } = directory
  if (pepper.kind === 'unreadable')
    return problem(
      `${file} cannot be read: ${pepper.reason}`,
      'Give it to the user that the gateway runs as.',
    )
  if (pepper.kind === 'missing') {
    if (known === null) return ok('not there yet: the next start makes one')
    return problem(
      `${file} is lost, and without it none of the keys in the database is recognised`,
      'Restore it from its backup, or set TOLLGATE_PEPPER to what stood in it.',
    )
  }
  if (isOpenToOthers(pepper.mode))
    return problem(`${file} can be read by other users (mode ${octal(pepper.mode)})`, `chmod 600 ${file}`)
  if (known !== null && known !== pepper.fingerprint) return otherPepper(file, config)
  return ok(`in ${file}, private${known === null ? '' : ', the one that the keys were made with'}`)
}

export function checkAdminKey(config: Config, { directory, database }: Facts): Check {
  const { ok, skipped, warning, problem } = verdicts('admin_key')
  const file = join(config.dataDir, 'admin-key')
  const fileMode = directory?.kind === 'there' ? directory.adminKeyMode : null
  if (fileMode !== null && isOpenToOthers(fileMode))
    return problem(`${file} can be read by other users (mode ${octal(fileMode)})`, `chmod 600 ${file}`)
  if (config.adminKey !== null) return ok('from TOLLGATE_ADMIN_KEY')
  const contents = contentsOf(database)
  if (contents === null) {
    return database?.kind === 'broken'
      ? skipped('the database cannot be read')
      : ok('none yet: the first start makes one and prints it')
  }
  if (contents.adminKeysInForce > 0) return ok(`${counted(contents.adminKeysInForce, 'key')} in force`)
  if (contents.bootstrapKeyInForce && isServed(database))
    return ok("the running gateway's TOLLGATE_ADMIN_KEY")
  return warning(
    contents.bootstrapKeyInForce
      ? 'the only one in force came from TOLLGATE_ADMIN_KEY, which is not set here'
      : 'none is in force, so nobody can manage keys',
    'Make one with `tollgate admin-key create`, or set TOLLGATE_ADMIN_KEY. The next start makes one as well.',
  )
}

/** Bills that the database refused for good: nobody is charged for these calls until somebody looks at the file. */
export function* checkRefused(dataDir: string, directory: DirectoryFacts): Generator<Check> {
  const { warning } = verdicts('refused_settlements')
  if (directory.kind !== 'there' || directory.refusedSettlements === 0) return
  const file = join(dataDir, 'spool', 'refused.jsonl')
  const { refusedSettlements: count } = directory
  if (count === null) yield warning(`${file} cannot be read`, 'Give it to the user that the gateway runs as.')
  else
    yield warning(
      `the bills of ${counted(count, 'call')} could not be booked, and are in ${file}`,
      'Each line says why, and what the call cost. Move the file away when they are dealt with.',
    )
}

function otherPepper(what: string, { databaseUrl }: Config): Check {
  return verdicts('pepper').problem(
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

const WAL_BYTES_MAX = 256_000_000
const PROBLEMS_SHOWN_MAX = 3
const RESTORE = 'Stop the gateway, keep a copy of the data directory, and restore the newest good backup.'

export function checkDatabase(database: DatabaseFacts): Check {
  const { ok, warning, problem } = verdicts('database')
  if (database.kind === 'missing') return ok('not there yet: the first start creates it')
  if (database.kind === 'broken') return problem(`it cannot be read: ${database.reason}`, RESTORE)
  const { schemaVersion, schemaVersionKnown, bytes, walBytes, bodiesBytes } = database
  const sizes = [
    inBytes(bytes),
    `write-ahead log ${inBytes(walBytes)}`,
    ...(bodiesBytes === 0 ? [] : [`logged bodies ${inBytes(bodiesBytes)}`]),
    `schema version ${schemaVersion}`,
  ]
  const found = `SQLite, ${sizes.join(', ')}`
  if (schemaVersion > schemaVersionKnown)
    return problem(
      `${found}, but this Tollgate knows up to ${schemaVersionKnown}: a newer one wrote it`,
      'Start that newer version, or restore a backup made before the upgrade.',
    )
  if (schemaVersion < schemaVersionKnown)
    return warning(
      `${found}, of an older Tollgate; the next start upgrades it to ${schemaVersionKnown}`,
      'Make a backup first: the older version cannot read it after that.',
    )
  if (walBytes > WAL_BYTES_MAX)
    return warning(
      `${found}: the log grows while somebody reads for long, and is not folded back meanwhile`,
      'Let exports and audits end; a restart of the gateway folds it back.',
    )
  return ok(found)
}

export function checkServing(database: DatabaseFacts): Check {
  const { ok, skipped, warning } = verdicts('serving')
  if (database.kind !== 'open') return skipped('there is no database to serve from')
  const { serving, contents } = database
  const openCalls = contents?.openCalls ?? 0
  if (serving === null) return skipped('it cannot be told whether a gateway serves from here')
  if (serving) return ok(`a gateway serves from here now, with ${counted(openCalls, 'call')} in flight`)
  if (openCalls === 0) return ok('no gateway serves from here now')
  return warning(
    `no gateway serves from here now, and ${counted(openCalls, 'call')} never ended: it was killed or crashed`,
    'Start it: it closes them as interrupted, at no charge, and the request log shows what was lost.',
  )
}

export function checkIntegrity(
  database: DatabaseFacts,
  integrity: readonly IntegrityFacts[] | undefined,
  cutShort: Examination['cutShort'],
  deadlineMs: number,
): Check {
  const { ok, skipped, warning, problem } = verdicts('integrity')
  if (database.kind !== 'open') return skipped('there is no database that can be read')
  if (integrity === undefined) {
    return cutShort === 'late'
      ? warning(
          `${inBytes(database.bytes + database.bodiesBytes)} could not be checked within ${inTime(deadlineMs)}`,
          'Give it more time, in seconds: tollgate doctor --timeout 600',
        )
      : problem('the check itself failed', `Run it again. If it fails again: ${RESTORE}`)
  }
  const broken = integrity.find(({ problems }) => problems.length > 0)
  if (broken !== undefined) {
    const shown = broken.problems.slice(0, PROBLEMS_SHOWN_MAX).join('; ')
    return problem(`${basename(broken.file)} is damaged: ${oneLine(shown)}`, RESTORE)
  }
  const files = integrity.map(({ file }) => basename(file)).join(' and ')
  return ok(`no damage in ${files}`)
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 500)
}
