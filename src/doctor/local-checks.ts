import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { dateOf, outOfDate, readCertificate } from '../config/read-certificate.ts'
import { ConfigError, readPepper, type UpstreamConfig } from '../config/read-config.ts'
import { readPricing } from '../config/read-pricing.ts'
import { REAL_UPSTREAM, whyNotSimulated } from '../config/simulator.ts'
import { InstallationError } from '../kernel/errors.ts'
import { type Secret, shownDatabase } from '../kernel/secret.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/secrets.ts'
import { isOpenToOthers } from '../store/data-dir.ts'
import { readOwnUpstreams } from '../store/operations/accounts.ts'
import { runOn } from '../store/operations/operation.ts'
import { readSetting } from '../store/operations/settings.ts'
import { type Check, type CheckContext, ok, problem, type Result, skipped, warning } from './check.ts'

/** The configuration was read before. This checks its price files, and warns about risky settings. */
export const checkConfiguration: Check = async ({ config, snapshot }) => {
  try {
    await readPricing(config)
  } catch (error) {
    return configurationProblems(error)
  }
  const { messages, chat } = config
  if (messages === null && chat === null) {
    const opened = await snapshot.catch(() => null)
    const whyNot = whyNotSimulated(config, {
      hasOwnUpstreams: opened !== null && (await runOn(opened.query, readOwnUpstreams())).length > 0,
      hasRealUpstream: opened !== null && (await runOn(opened.query, readSetting(REAL_UPSTREAM))) !== null,
    })
    if (whyNot === null) return ok('no upstream is configured, so the built-in simulator answers every call')
    return warning(
      `the built-in simulator is off: ${whyNot}; calls of accounts without an own upstream get 503`,
      'Set ANTHROPIC_API_KEY or OPENAI_API_KEY, unless every account has its own upstream.',
    )
  }
  if (messages !== null && /\/v1\/?$/.test(messages.url.pathname))
    return warning(
      'TOLLGATE_MESSAGES_URL ends in /v1, so calls go to /v1/v1/messages',
      'Remove /v1 from the end, unless this upstream needs it.',
    )
  const inClear = [messages, chat].find((upstream) => upstream !== null && sendsKeyInClear(upstream))
  if (inClear)
    return warning(
      `the upstream key goes to ${inClear.url.host} unencrypted`,
      'Use https://, unless you trust the network.',
    )
  return ok('all variables and settings are valid')
}

export function configurationProblems(error: unknown): Result[] {
  if (!(error instanceof ConfigError)) throw error
  return error.problems.map((found) =>
    problem(found, 'Correct this setting. Until then, the gateway does not start.'),
  )
}

function sendsKeyInClear({ url, key }: UpstreamConfig): boolean {
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  return key !== null && url.protocol === 'http:' && !isLoopback
}

export const checkDataDirectory: Check = async ({ config: { dataDir } }) => {
  const found = await stat(dataDir).catch((error: NodeJS.ErrnoException) => error)
  if (found instanceof Error && found.code !== 'ENOENT')
    return problem(`${dataDir} cannot be used: ${found.message}`, 'Set TOLLGATE_DATA_DIR to another folder.')
  if (found instanceof Error) {
    const above = await nearestFolder(dataDir)
    return (await isWritable(above))
      ? ok(`${dataDir} does not exist yet: the first start creates it`)
      : problem(`${dataDir} does not exist, and ${above} is not writable`, `mkdir -m 700 ${dataDir}`)
  }
  if (!found.isDirectory()) return problem(`${dataDir} is not a folder`, 'Set TOLLGATE_DATA_DIR to a folder.')
  if (!(await isWritable(dataDir)))
    return problem(
      `${dataDir} is not writable by this user`,
      'Run doctor as the user that runs the gateway, and make that user the owner of the folder.',
    )
  const openFiles = ['pepper', 'admin-key'].map((name) => join(dataDir, name)).filter(isOpenToOthers)
  if (openFiles.length > 0)
    return warning(`other users can read ${openFiles.join(', ')}`, `chmod 600 ${openFiles.join(' ')}`)
  if (isOpenToOthers(dataDir)) return warning(`${dataDir} is open to other users`, `chmod 700 ${dataDir}`)
  return ok(`${dataDir} is writable and private`)
}

async function nearestFolder(path: string): Promise<string> {
  const above = dirname(path)
  return (await stat(above).catch(() => null)) === null && above !== path ? nearestFolder(above) : above
}

async function isWritable(path: string): Promise<boolean> {
  return await access(path, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
}

export const checkPepper = async ({ config, snapshot }: Omit<CheckContext, 'nowMs'>): Promise<Result> => {
  const file = join(config.dataDir, 'pepper')
  const location = config.pepper === null ? file : 'TOLLGATE_PEPPER'
  const opened = await snapshot.catch(() => undefined)
  if (opened === undefined) return skipped('the database cannot be read')
  const known = opened && (await runOn(opened.query, readSetting('pepper')))
  let pepper: Secret | null
  try {
    pepper = readPepper(config)
  } catch (error) {
    return problem(`${file} cannot be read: ${(error as Error).message}`, 'Allow this user to read the file.')
  }
  if (pepper === null)
    return known === null
      ? ok('there is no pepper yet: the first start creates it')
      : problem(`${file} is missing, so no key in the database is recognised`, RESTORE_PEPPER)
  const fingerprint = pepperFingerprint(createKeyDigest(pepper))
  if (known !== null && known !== fingerprint)
    return problem(
      `${location} is not the pepper that the keys in the database were created with, so no key is recognised`,
      RESTORE_PEPPER,
    )
  return ok(`${location}${known === null ? '' : ' matches the database'}`)
}

const RESTORE_PEPPER =
  'Restore the file "pepper" from a backup, or set TOLLGATE_PEPPER to its former value on every node.'

export const checkStore: Check = async ({ config: { dataDir, databaseUrl }, snapshot }) => {
  const location = databaseUrl === null ? join(dataDir, 'tollgate.db') : shownDatabase(databaseUrl)
  try {
    return ok(
      (await snapshot) === null ? `${location} is empty: the first start creates the tables` : location,
    )
  } catch (error) {
    // The message of an InstallationError says what to do.
    if (error instanceof InstallationError)
      return problem(`${location} cannot be used: ${error.message}`, null)
    return problem(
      `${location} cannot be used: ${(error as Error).message}`,
      databaseUrl === null
        ? 'Restore it from a backup, or set TOLLGATE_DATA_DIR to another folder.'
        : 'Check that PostgreSQL runs and that TOLLGATE_DATABASE_URL is right.',
    )
  }
}

const MB = 1_000_000
const FREE_BYTES_WARNING = 1_000 * MB
const FREE_BYTES_PROBLEM = 20 * MB

export const checkDiskSpace: Check = async ({ config: { dataDir } }) => {
  const { bavail, bsize } = await statfs(dataDir).catch(async () => statfs(await nearestFolder(dataDir)))
  return [judgeSpace(bavail * bsize)]
}

export function judgeSpace(freeBytes: number): Result {
  const found = `${Math.floor(freeBytes / MB)} MB free`
  const todo = 'Free disk space, or move the data directory. When the disk is full, every call is refused.'
  if (freeBytes < FREE_BYTES_PROBLEM) return problem(found, todo)
  return freeBytes < FREE_BYTES_WARNING ? warning(found, todo) : ok(found)
}

const DAY_MS = 86_400_000
const RENEW_BEFORE_MS = 14 * DAY_MS

export const checkCertificate: Check = async ({ config: { tls }, nowMs }) => {
  if (tls === null) return skipped('no certificate is set, so the gateway serves plain HTTP')
  try {
    const certificate = readCertificate(tls)
    const { file, names, untilMs } = certificate
    const renew = 'Replace the certificate, and its key if it is new, then send the gateway SIGHUP.'
    const refused = outOfDate(certificate, nowMs)
    if (refused !== null) return warning(refused, renew)
    if (names.length === 0)
      return warning(
        `${file} names no host, so clients refuse it`,
        'Create a certificate with a subjectAltName.',
      )
    const found = `for ${names.join(', ')}, until ${dateOf(untilMs)}`
    return [untilMs - nowMs > RENEW_BEFORE_MS ? ok(found) : warning(found, renew)]
  } catch (error) {
    return configurationProblems(error)
  }
}
