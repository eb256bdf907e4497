import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KEY_HEADER } from '../job.ts'
import { type StartedProcess, startProcess } from '../start-process.ts'
import type { RunningSubject, Setting, Subject } from './subject.ts'

/** Pepper and admin key are fixed, so that databases that were filled beforehand know the keys, and their owner. */
export const PEPPER = 'tollgate-bench-pepper'
export const ADMIN_KEY = 'tollgate-bench-admin-key-of-48-characters-0123456'

/** A cap far beyond the spend of a run, so that it is checked on every call and never reached. */
const BUDGET_USD = 1_000_000
const CREDIT_USD = 1_000_000_000

/** A high limit, since all streams of a run come with one key. */
const CALLS_PER_KEY = 10_000

export interface TollgateParts {
  readonly name: string
  /** The folder of the source: this tree, or that of another revision. */
  readonly root: string
  /** The program to run; unless given, the command-line program of the source. */
  readonly program?: string
  /** A data directory to begin with instead of an empty one. The directory is copied. */
  readonly dataDir?: string
  readonly nodeArgs?: readonly string[]
}

/** Tollgate with everything on: keys, a cap, prepaid credit, the durable ledger on a disk, headers and the log. */
export function tollgate(parts: TollgateParts): Subject {
  return {
    name: parts.name,
    async start(setting) {
      const dataDir = join(setting.folder, 'data')
      mkdirSync(dataDir)
      if (parts.dataDir !== undefined) cpSync(parts.dataDir, dataDir, { recursive: true })
      const { started, url } = await serve(parts, setting, dataDir)
      return running(started, url, await giveKey(url))
    },
  }
}

/** A key with a cap, on an account with credit. */
export async function giveKey(url: string): Promise<string> {
  await manage(url, '/gateway/v1/credits', { amount_usd: CREDIT_USD, reason: 'bench' })
  return createKey(url)
}

export async function createKey(url: string): Promise<string> {
  const { key } = await manage(url, '/v1/keys', { name: 'bench', monthly_budget_usd: BUDGET_USD })
  return String(key)
}

export function running(started: StartedProcess, url: string, key: string): RunningSubject {
  return {
    urls: [url],
    headers: () => [[KEY_HEADER, key]],
    pids: () => [started.pid],
    stop: () => started.stop(),
  }
}

export async function serve(
  parts: TollgateParts,
  setting: Setting,
  dataDir: string,
  port = 0,
  env: Readonly<Record<string, string>> = {},
): Promise<{ started: StartedProcess; url: string }> {
  const started = startTollgate(parts, setting, dataDir, port, env)
  const [, url = ''] = await started.printed(/serves (http:\/\/\S+)/)
  return { started, url }
}

/** Starts Tollgate as an operator does. Port 0 is any free port. */
export function startTollgate(
  { root, program = join(root, 'src/cli/tollgate.ts'), nodeArgs = [] }: TollgateParts,
  { upstreamUrl, folder, core }: Setting,
  dataDir: string,
  port: number,
  env: Readonly<Record<string, string>> = {},
): StartedProcess {
  const settings = {
    limits: { calls_in_flight_per_key: CALLS_PER_KEY },
    ...(env['TOLLGATE_REUSE_PORT'] === undefined ? {} : { metrics: { port: 0 } }),
  }
  writeFileSync(join(folder, 'tollgate.json'), JSON.stringify(settings))
  return startProcess({
    command: process.execPath,
    args: [...startOptions(root), ...nodeArgs, program, 'serve'],
    core,
    cwd: folder,
    errors: { file: join(folder, 'tollgate.log') },
    env: {
      TOLLGATE_PORT: String(port),
      TOLLGATE_DATA_DIR: dataDir,
      TOLLGATE_ADMIN_KEY: ADMIN_KEY,
      TOLLGATE_PEPPER: PEPPER,
      TOLLGATE_LOG_LEVEL: 'info',
      TOLLGATE_MESSAGES_URL: upstreamUrl,
      TOLLGATE_MESSAGES_KEY: 'bench',
      TOLLGATE_CHAT_URL: `${upstreamUrl}/v1`,
      TOLLGATE_CHAT_KEY: 'bench',
      ...env,
    },
  })
}

/** The options that `npm start` of that revision gives to Node. */
function startOptions(root: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  return scripts.start.split(' ').filter((word) => word.startsWith('--'))
}

async function manage(url: string, path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Record<string, unknown>
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}
