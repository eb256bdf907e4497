import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from './postgres.ts'

const run = promisify(execFile)

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate-pgbouncer', import.meta.url))
const PACKAGES = ['pgbouncer', 'libevent-2.1-7', 'libc-ares2']

interface Program {
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

/** `PGBOUNCER_PATH`, an installed PgBouncer, or Debian's packages in a cache folder. */
async function findPgBouncer(): Promise<Program> {
  const named = process.env['PGBOUNCER_PATH']
  for (const path of [...(named === undefined ? [] : [named]), '/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'])
    if (existsSync(path)) return { path, env: {} }
  if (!existsSync(CACHE)) {
    const part = `${CACHE}.part`
    rmSync(part, { recursive: true, force: true })
    mkdirSync(part, { recursive: true })
    await run('apt-get', ['download', ...PACKAGES], { cwd: part })
    for (const name of readdirSync(part).filter((each) => each.endsWith('.deb')))
      await run('dpkg', ['-x', name, '.'], { cwd: part })
    renameSync(part, CACHE)
  }
  const library = readdirSync(CACHE, { recursive: true, encoding: 'utf8' }).find((name) =>
    /libevent-[\d.]+so/.test(name),
  )
  return {
    path: join(CACHE, 'usr/sbin/pgbouncer'),
    env: { LD_LIBRARY_PATH: join(CACHE, library ?? '', '..') },
  }
}

export interface RunningPgBouncer {
  readonly version: string
  /** The same database, through the pooler. */
  through(url: string): string
  stop(): Promise<void>
}

/** PgBouncer in transaction mode with few connections to the server at this URL, so that clients take turns. */
export async function startPgBouncer(server: string): Promise<RunningPgBouncer> {
  const { path, env } = await findPgBouncer()
  const { stdout } = await run(path, ['--version'], { env: { ...process.env, ...env } })
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-pgbouncer-'))
  const port = await freePort()
  const { hostname, port: serverPort, username, password } = new URL(server)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${hostname} port=${serverPort} user=${username} password=${password}`,
      '[pgbouncer]',
      ...['pool_mode = transaction', 'default_pool_size = 6', 'max_client_conn = 500', 'auth_type = any'],
      ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'log_connections = 0'],
      'log_disconnections = 0',
    ].join('\n'),
  )
  chmodSync(folder, 0o755)
  const asUser = process.getuid?.() === 0 ? ['-u', 'postgres'] : []
  const child = spawn(path, [...asUser, file], { env: { ...process.env, ...env }, stdio: 'ignore' })
  const through = (url: string): string => Object.assign(new URL(url), { port: String(port) }).href
  while (!(await answers(through(server)))) {
    if (child.exitCode !== null) throw new Error(`${path} does not start`)
    await sleep(20)
  }
  return {
    version: stdout.split('\n', 1)[0] ?? '',
    through,
    async stop() {
      child.kill()
      if (child.exitCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
