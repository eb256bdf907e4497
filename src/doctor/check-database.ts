import { basename } from 'node:path'
import { counted, inBytes, inTime } from './amounts.ts'
import type { Examination } from './ask-examiner.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'
import type { DatabaseFacts, IntegrityFacts } from './data-dir-facts.ts'

const WAL_BYTES_MAX = 256_000_000
const PROBLEMS_SHOWN_MAX = 3
const RESTORE = 'Stop the gateway, keep a copy of the data directory, and restore the newest good backup.'

export function checkDatabase(database: DatabaseFacts): Check {
  const name = 'database'
  if (database.kind === 'missing') return ok(name, 'not there yet: the first start creates it')
  if (database.kind === 'broken') return problem(name, `it cannot be read: ${database.reason}`, RESTORE)
  const { schemaVersion, schemaVersionKnown, bytes, walBytes, bodiesBytes } = database
  const sizes = [
    inBytes(bytes),
    `write-ahead log ${inBytes(walBytes)}`,
    ...(bodiesBytes === 0 ? [] : [`logged bodies ${inBytes(bodiesBytes)}`]),
    `schema version ${schemaVersion}`,
  ]
  const found = `SQLite, ${sizes.join(', ')}`
  if (schemaVersion > schemaVersionKnown) {
    return problem(
      name,
      `${found}, but this Tollgate knows up to ${schemaVersionKnown}: a newer one wrote it`,
      'Start that newer version, or restore a backup made before the upgrade.',
    )
  }
  if (schemaVersion < schemaVersionKnown) {
    return warning(
      name,
      `${found}, of an older Tollgate; the next start upgrades it to ${schemaVersionKnown}`,
      'Make a backup first: the older version cannot read it after that.',
    )
  }
  if (walBytes > WAL_BYTES_MAX) {
    return warning(
      name,
      `${found}: the log grows while somebody reads for long, and is not folded back meanwhile`,
      'Let exports and audits end; a restart of the gateway folds it back.',
    )
  }
  return ok(name, found)
}

export function checkServing(database: DatabaseFacts): Check {
  const name = 'serving'
  if (database.kind !== 'open') return skipped(name, 'there is no database to serve from')
  const { serving, contents } = database
  const openCalls = contents?.openCalls ?? 0
  if (serving === null) return skipped(name, 'it cannot be told whether a gateway serves from here')
  if (serving) {
    return ok(name, `a gateway serves from here now, with ${counted(openCalls, 'call')} in flight`)
  }
  if (openCalls === 0) return ok(name, 'no gateway serves from here now')
  return warning(
    name,
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
  const name = 'integrity'
  if (database.kind !== 'open') return skipped(name, 'there is no database that can be read')
  if (integrity === undefined) {
    return cutShort === 'late'
      ? warning(
          name,
          `${inBytes(database.bytes + database.bodiesBytes)} could not be checked within ${inTime(deadlineMs)}`,
          'Give it more time, in seconds: tollgate doctor --timeout 600',
        )
      : problem(name, 'the check itself failed', `Run it again. If it fails again: ${RESTORE}`)
  }
  const broken = integrity.find(({ problems }) => problems.length > 0)
  if (broken !== undefined) {
    const shown = broken.problems.slice(0, PROBLEMS_SHOWN_MAX).join('; ')
    return problem(name, `${basename(broken.file)} is damaged: ${oneLine(shown)}`, RESTORE)
  }
  const files = integrity.map(({ file }) => basename(file)).join(' and ')
  return ok(name, `no damage in ${files}`)
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 500)
}
