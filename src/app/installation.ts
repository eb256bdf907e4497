import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Config, readPepper } from '../config/read-config.ts'
import { SYSTEM } from '../kernel/actor.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { InstallationError } from '../kernel/errors.ts'
import { createUlidSource } from '../kernel/ids.ts'
import type { Log } from '../kernel/log.ts'
import { Secret, shownDatabase } from '../kernel/secret.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { createKeyDigest, createSecretSealer, pepperFingerprint } from '../keys/secrets.ts'
import { lockDataDir, makePrivateDir } from '../store/data-dir.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'

/** Everything that comes from the data directory or the shared database. */
export type Installation = Awaited<ReturnType<typeof openInstallation>>

export interface StoreSurroundings {
  readonly log: Log
  readonly clock: Clock
  /** Lets tests make the disk fail; see the SQLite worker. */
  readonly diskFault?: SharedArrayBuffer
  /** How long PostgreSQL may take to answer. Tests on busy machines raise it. */
  readonly storeAnswerMs?: number
  /** Called when the database has failed permanently, so that no call can be admitted. */
  onFatal(error: Error): void
}

/** Opens the data directory for serving: exclusively, with a usable admin key. Creates missing files. */
export async function openInstallation(config: Config, surroundings: StoreSurroundings) {
  prepareDir(config.dataDir)
  const lock = lockDataDir(config.dataDir)
  if (lock === null) {
    throw new InstallationError(
      `Another Tollgate process already uses ${config.dataDir}. Stop it, or set TOLLGATE_DATA_DIR to another folder.`,
    )
  }
  let store: Store | null = null
  const close = async () => {
    await store?.close()
    lock.release()
  }
  try {
    const opened = await openStore(config, surroundings, true)
    store = opened.store
    // The directory is locked, so the calls that are still open belong to a dead process.
    const interruptedCalls = await store.interruptOpenCalls(opened.clock.nowMs())
    const firstAdminKey = await ensureAdminKey(config, opened)
    return { ...opened, firstAdminKey, interruptedCalls, close }
  } catch (error) {
    // An open store (a thread or connection) would keep the failed process alive.
    await close()
    throw error
  }
}

/**
 * Opens the store and checks the pepper. Commands use it too, even while a gateway runs. `clock` is the database server's
 * clock if there is one, else this machine's.
 */
export async function openStore(config: Config, surroundings: StoreSurroundings, serving = false) {
  const { onFatal, diskFault, clock: own } = surroundings
  prepareDir(config.dataDir)
  const { store, clock } =
    config.databaseUrl === null
      ? { store: await openSqliteStore(join(config.dataDir, 'tollgate.db'), onFatal, diskFault), clock: own }
      : await openPostgres(config.databaseUrl, surroundings, serving ? nodeName(config.dataDir) : null)
  try {
    const pepper = await ensurePepper(config, store)
    const digestKey = createKeyDigest(pepper)
    const fingerprint = pepperFingerprint(digestKey)
    // If several nodes start on an empty database, the first sets the pepper, and the others must have the same.
    if ((await store.getOrCreateSetting('pepper', fingerprint)) !== fingerprint)
      throw wrongPepper('The pepper is not the one that the keys were created with')
    return {
      store,
      clock,
      digestKey,
      webhookSealer: createSecretSealer(pepper, 'webhook secrets'),
      upstreamSealer: createSecretSealer(pepper, 'upstream keys'),
      attemptSealer: createSecretSealer(pepper, 'sign-ins that have begun'),
      refreshTokenSealer: createSecretSealer(pepper, 'refresh tokens'),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openPostgres(
  databaseUrl: Secret,
  { clock, log, storeAnswerMs }: StoreSurroundings,
  name: string | null,
) {
  try {
    // Load PostgreSQL's driver only if it is used. With SQLite, it would be a tenth of the startup time.
    const { openPostgresStore } = await import('../store/postgres/postgres-store.ts')
    const store = await openPostgresStore(databaseUrl.reveal(), {
      // Nodes use the database's clock, except with the clock of a test.
      clock: clock === systemClock ? 'database' : 'caller',
      // The directory is locked, so the previous node of this name is dead. A command is not a node.
      node: { name: name ?? 'command line', alone: name !== null },
      log,
      nodeClock: clock,
      answerMs: storeAnswerMs,
    })
    return { store, clock: store.clock }
  } catch (error) {
    // Its message says what to do.
    if (error instanceof InstallationError) throw error
    throw databaseNotOpened(databaseUrl, error as Error)
  }
}

export function databaseNotOpened(databaseUrl: Secret, { message }: Error): InstallationError {
  return new InstallationError(
    `The database ${shownDatabase(databaseUrl)} cannot be opened: ${message.replace(/\.$/, '')}. ` +
      'Check TOLLGATE_DATABASE_URL.',
  )
}

/** The name survives restarts, so that a node fences its previous process. The host name makes copied files differ. */
function nodeName(dataDir: string): string {
  const file = join(dataDir, 'node')
  if (!existsSync(file)) writePrivateFile(file, `${randomBytes(4).toString('hex')}\n`)
  return `${hostname()}/${readFileSync(file, 'utf8').trim()}`
}

function explainFailure<T>(failure: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new InstallationError(`${failure}: ${(error as Error).message}`)
  }
}

function prepareDir(path: string): void {
  explainFailure(`The data directory ${path} cannot be created`, () => makePrivateDir(path))
}

async function ensurePepper(config: Config, store: Store): Promise<Secret> {
  const file = join(config.dataDir, 'pepper')
  const known = explainFailure(`${file} cannot be read`, () => readPepper(config))
  if (known !== null) return known
  // Do not create a new pepper if the database was used with another one, which the directory has lost.
  if ((await store.readSetting('pepper')) !== null) throw wrongPepper(`${file} is missing`)
  const pepper = randomBytes(32).toString('base64url')
  writePrivateFile(file, `${pepper}\n`)
  return new Secret(pepper)
}

function wrongPepper(problem: string): InstallationError {
  return new InstallationError(
    `${problem}, so no key in the database would be recognised. Restore the file "pepper" of the data directory of the ` +
      'first node, or set TOLLGATE_PEPPER to its value on every node.',
  )
}

/** Creates an admin key if there is no usable one, and writes it to a private file. */
async function ensureAdminKey(
  config: Config,
  { store, clock, digestKey }: Awaited<ReturnType<typeof openStore>>,
): Promise<string | null> {
  const create = (name: string, secret: Secret, bootstrap: boolean) => {
    const shown = { id: `adm_${createUlidSource(clock)()}`, name, ...shownParts(secret, config.prefix) }
    const record = { ...shown, digest: digestKey(secret.reveal()), createdAtMs: clock.nowMs(), bootstrap }
    return store.createAdminKey({ ...record, role: 'operator', accountId: null }, SYSTEM)
  }
  if (config.adminKey !== null) {
    await create('TOLLGATE_ADMIN_KEY', config.adminKey, true)
    return null
  }
  // An admin key from the configuration is revoked when it is removed from the configuration.
  await store.revokeBootstrapKeys(SYSTEM, clock.nowMs())
  if (await store.hasOperatorKey()) return null
  const key = mintKey(config.prefix, 'admin')
  // Write the file first. After a crash, a file with an unknown key is better than a usable key that nobody has seen.
  writePrivateFile(join(config.dataDir, 'admin-key'), `${key.reveal()}\n`)
  await create('first operator key', key, false)
  return key.reveal()
}

function writePrivateFile(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 })
  // The mode above applies only to a new file.
  chmodSync(path, 0o600)
}
