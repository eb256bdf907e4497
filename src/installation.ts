import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { InstallationError } from './kernel/errors.ts'
import { createUlidSource } from './kernel/ids.ts'
import type { Log } from './kernel/log.ts'
import { Secret, shownDatabase } from './kernel/secret.ts'
import { SYSTEM } from './kernel/vocabulary.ts'
import { mintKey, shownParts } from './keys/key-format.ts'
import {
  createKeyDigest,
  createSecretSealer,
  type DigestKey,
  pepperFingerprint,
  type SecretSealer,
} from './keys/secrets.ts'
import { type DataDirLock, lockDataDir, makePrivateDir, tightenFiles } from './store/data-dir.ts'
import { SCHEMA_VERSION } from './store/schema.ts'
import { openSqliteStore } from './store/sqlite/sqlite-store.ts'
import type { Store } from './store/store.ts'

/** The content of the data directory or the shared database: the store, the pepper, the first admin key. */
export interface Installation {
  readonly store: Store
  /** The clock of the database server if there is one, otherwise this machine's. */
  readonly clock: Clock
  readonly digestKey: DigestKey
  /** For the secrets that webhooks are signed with. */
  readonly webhookSealer: SecretSealer
  /** For the keys of the upstreams that accounts have of their own. */
  readonly upstreamSealer: SecretSealer
  readonly firstAdminKey: string | null
  /** Calls that were in flight when the gateway last ended without settling them. */
  readonly interruptedCalls: number
  close(): Promise<void>
}

/** The parts of the process that an open store needs. */
export interface StoreSurroundings {
  readonly log: Log
  readonly clock: Clock
  /** For tests of failing disks; see the SQLite worker. */
  readonly diskFault: SharedArrayBuffer | null
  /** How long PostgreSQL may take to answer. Tests on busy machines raise it. */
  readonly storeAnswerMs?: number
  onFatal(error: Error): void
}

/** Opens the data directory to serve from it: exclusively, with an active admin key. Creates the files that are missing. */
export async function openInstallation(
  config: Config,
  surroundings: StoreSurroundings,
): Promise<Installation> {
  prepareDir(config.dataDir)
  keepPrivate(config.dataDir, surroundings.log)
  const lock = lockDataDir(config.dataDir)
  if (lock === null) {
    throw new InstallationError(
      `Another Tollgate serves from ${config.dataDir} already. Stop it, or set TOLLGATE_DATA_DIR to another folder.`,
    )
  }
  let store: Store | null = null
  try {
    const opened = await openStore(config, surroundings, true)
    store = opened.store
    const { digestKey, webhookSealer, upstreamSealer, clock } = opened
    // The process that held these calls is gone: this process is the only one that serves from here, or under this name.
    const interruptedCalls = await store.interruptOpenCalls(clock.nowMs())
    const firstAdminKey = await ensureAdminKey(config, clock, store, digestKey)
    return {
      store: opened.store,
      clock,
      digestKey,
      webhookSealer,
      upstreamSealer,
      firstAdminKey,
      interruptedCalls,
      close: () => closeAll(opened.store, lock),
    }
  } catch (error) {
    // An open store is a thread or a connection, and either would hold a process open that does not serve.
    await store?.close()
    lock.release()
    throw error
  }
}

/** Opens the store and checks its pepper; without serving for the command line, beside a running gateway or not. */
export async function openStore(
  config: Config,
  surroundings: StoreSurroundings,
  serving = false,
): Promise<Pick<Installation, 'store' | 'clock' | 'digestKey' | 'webhookSealer' | 'upstreamSealer'>> {
  prepareDir(config.dataDir)
  const { store, clock } =
    config.databaseUrl === null
      ? { store: await openOwnBooks(config.dataDir, surroundings, serving), clock: surroundings.clock }
      : await openSharedBooks(config.databaseUrl, surroundings, serving ? nodeName(config.dataDir) : null)
  try {
    const pepper = config.pepper ?? (await readPepper(config, store))
    const digestKey = createKeyDigest(pepper)
    await checkPepper(store, digestKey, config.databaseUrl !== null)
    return {
      ...{ store, clock, digestKey },
      webhookSealer: createSecretSealer(pepper, 'webhook secrets'),
      upstreamSealer: createSecretSealer(pepper, 'upstream keys'),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openOwnBooks(
  dataDir: string,
  { onFatal, diskFault }: StoreSurroundings,
  serving: boolean,
): Promise<Store> {
  if (!serving) await refuseUpgradeBeside(dataDir)
  return await openSqliteStore(join(dataDir, 'tollgate.db'), onFatal, diskFault)
}

async function openSharedBooks(
  databaseUrl: Secret,
  { clock, log, storeAnswerMs }: StoreSurroundings,
  name: string | null,
): Promise<Pick<Installation, 'store' | 'clock'>> {
  try {
    // PostgreSQL's driver is loaded only where it is used: it would be a tenth of the start of a gateway on SQLite.
    const { openPostgresStore } = await import('./store/postgres/postgres-store.ts')
    const store = await openPostgresStore(databaseUrl.reveal(), {
      // Tests bring a clock of their own, and it decides; nodes go by the database's clock, which they share.
      clock: clock === systemClock ? 'database' : 'caller',
      // No other process serves from this data directory, so a node that served under its name before is gone.
      // A command admits nothing, and so is no node.
      node: { name: name ?? 'command line', alone: name !== null },
      log,
      nodeClock: clock,
      answerMs: storeAnswerMs,
    })
    return { store, clock: store.clock }
  } catch (error) {
    throw unopenedDatabase(databaseUrl, error as Error)
  }
}

export function unopenedDatabase(databaseUrl: Secret, { message }: Error): InstallationError {
  return new InstallationError(
    `The database ${shownDatabase(databaseUrl)} cannot be opened: ${message.replace(/\.$/, '')}. ` +
      'TOLLGATE_DATABASE_URL says where they are.',
  )
}

/**
 * The name of this node among the others. The name stays the same over restarts, so that a node that comes back fences its
 * former process at once; the host's name is part of it, because data directories get copied with the machines they are on.
 */
function nodeName(dataDir: string): string {
  const file = join(dataDir, 'node')
  if (!existsSync(file)) writePrivateFile(file, `${randomBytes(4).toString('hex')}\n`)
  return `${hostname()}/${readFileSync(file, 'utf8').trim()}`
}

/** A command of a newer version must not migrate the database under an older running gateway. */
export async function refuseUpgradeBeside(dataDir: string): Promise<void> {
  const file = join(dataDir, 'tollgate.db')
  const { schemaVersionOf } = await import('./store/sqlite/database.ts')
  if (!existsSync(file) || schemaVersionOf(file) >= SCHEMA_VERSION) return
  const lock = lockDataDir(dataDir)
  lock?.release()
  if (lock !== null) return
  throw new InstallationError(
    `The gateway that serves from ${dataDir} is of an older version than this command. Restart it with this ` +
      'version first, or ask it over HTTP with --url.',
  )
}

async function closeAll(store: Store, lock: DataDirLock): Promise<void> {
  await store.close()
  lock.release()
}

/** The mode of an existing directory is the operator's choice; its files are for this user alone. */
function keepPrivate(dataDir: string, log: Log): void {
  for (const path of tightenFiles(dataDir)) {
    log.warn(
      { file: path },
      `other users may read this file, and this one may not change that; run: chmod go= ${path}`,
    )
  }
}

function prepareDir(path: string): void {
  try {
    makePrivateDir(path)
  } catch (error) {
    throw new InstallationError(`The data directory ${path} cannot be created: ${(error as Error).message}`)
  }
}

async function readPepper({ dataDir, databaseUrl }: Config, store: Store): Promise<Secret> {
  const file = join(dataDir, 'pepper')
  try {
    const pepper = readFileSync(file, 'utf8').trim()
    // A start that was cut off may have left an empty file, and an empty pepper protects nothing.
    if (pepper !== '') return new Secret(pepper)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new InstallationError(`${file} cannot be read: ${(error as Error).message}`)
    }
  }
  // A database that has known a pepper and a directory that has lost it must not get a new one silently.
  if ((await store.readSetting('pepper')) !== null) {
    throw databaseUrl === null ? lostPepper(file) : strangePepper('This node has no pepper, and so another')
  }
  const pepper = randomBytes(32).toString('base64url')
  writePrivateFile(file, `${pepper}\n`)
  return new Secret(pepper)
}

async function checkPepper(store: Store, digestKey: DigestKey, shared: boolean): Promise<void> {
  const fingerprint = pepperFingerprint(digestKey)
  // If several nodes start on an empty database, the first sets the pepper. The others must have the same.
  if ((await store.getOrCreateSetting('pepper', fingerprint)) === fingerprint) return
  throw shared ? strangePepper('This node has another pepper') : lostPepper('the configured pepper')
}

function lostPepper(what: string): InstallationError {
  return new InstallationError(
    `The keys in the database were made with another pepper than ${what}, so none of them would be recognised. ` +
      'Restore the file "pepper" of the data directory from its backup, or set TOLLGATE_PEPPER to the former value.',
  )
}

function strangePepper(what: string): InstallationError {
  return new InstallationError(
    `${what} than the keys in the database were made with, so none of them would be recognised. Set ` +
      'TOLLGATE_PEPPER to the same value on every node; the first one may have left it in the file "pepper" of its ' +
      'data directory.',
  )
}

/** There is never an open mode: if no admin key is active, one is created, shown once and stored in a private file. */
async function ensureAdminKey(
  config: Config,
  clock: Clock,
  store: Store,
  digestKey: DigestKey,
): Promise<string | null> {
  const create = (name: string, key: Secret, bootstrap: boolean) =>
    store.createAdminKey(
      {
        id: `adm_${createUlidSource(clock)()}`,
        role: 'operator',
        accountId: null,
        name,
        digest: digestKey(key.reveal()),
        ...shownParts(key, config.prefix),
        createdAtMs: clock.nowMs(),
        bootstrap,
      },
      SYSTEM,
    )
  if (config.adminKey !== null) {
    await create('TOLLGATE_ADMIN_KEY', config.adminKey, true)
    return null
  }
  // An admin key from the configuration is revoked when it is removed from the configuration.
  await store.dropBootstrapKeys(SYSTEM, clock.nowMs())
  if (await store.hasOperatorKey()) return null
  const key = mintKey(config.prefix, 'admin')
  // The file is written first: an active key that nobody has seen is worse than a file with an unknown key.
  writePrivateFile(join(config.dataDir, 'admin-key'), `${key.reveal()}\n`)
  await create('first operator key', key, false)
  return key.reveal()
}

function writePrivateFile(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 })
  // The mode above counts only when the file is new.
  chmodSync(path, 0o600)
}
