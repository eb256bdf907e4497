import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Check } from '../../src/doctor/check.ts'
import { runInThread } from '../support/command-thread.ts'
import { type Finished, runTollgate, serveTollgate } from '../support/tollgate-process.ts'

export type Environment = Readonly<Record<string, string>>

/** Books in the data directory, whatever the store of this run is. */
export const IN_DATA_DIR = { TOLLGATE_DATABASE_URL: '' } as const

/** Secrets of the tests. None of these secrets may be in the doctor's output. */
export const CANARIES = {
  messagesKey: 'sk-ant-canary-messages-0123456789',
  chatKey: 'sk-canary-chat-0123456789',
  pepper: 'canary-pepper-0123456789',
  adminKey: 'canary-admin-key-that-is-long-enough-0123456789',
} as const

export interface Report {
  readonly code: number | null
  readonly ok: boolean
  readonly checks: readonly Check[]
  /** The only check of that name. */
  check(name: string): Check
}

/** Folders to examine: each is a working directory of its own, with a data directory in it or without one. */
export class Ward {
  readonly #folders: string[] = []
  #healthy = ''

  /** Makes the data directory of a gateway that was started once and stopped. */
  async admitHealthy(): Promise<void> {
    const tollgate = await serveTollgate(IN_DATA_DIR)
    // The banner is printed a moment before the gateway listens to signals; it answers requests only after that.
    assert.equal((await fetch(`${tollgate.url}/healthz`)).status, 200)
    tollgate.signal('SIGTERM')
    assert.equal((await tollgate.finished).code, 0)
    this.#healthy = join(this.newFolder(), 'data')
    copyFolder(tollgate.dataDir, this.#healthy)
    await tollgate.dispose()
  }

  newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-doctor-'))
    this.#folders.push(folder)
    return folder
  }

  /** A copy of that data directory, which a test may damage. */
  healthyCopy(): string {
    const dataDir = join(this.newFolder(), 'data')
    copyFolder(this.#healthy, dataDir)
    return dataDir
  }

  discharge(): void {
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }
}

function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true })
  chmodSync(to, 0o700)
}

let known = false

/** Runs the doctor, at first as a process and then in a thread, and asserts that it tells no secret. */
export async function runDoctor(
  dataDir: string,
  args: readonly string[] = [],
  environment: Environment = {},
): Promise<Finished> {
  const run = known ? runInThread : runTollgate
  known = true
  const finished = await run(
    ['doctor', ...args],
    { TOLLGATE_DATA_DIR: dataDir, ...environment },
    nearest(dataDir),
  )
  for (const secret of [...Object.values(CANARIES), ...secretsIn(dataDir)]) {
    const said = finished.stdout + finished.stderr
    assert.ok(!said.includes(secret), `the doctor told a secret:\n${said}`)
  }
  return finished
}

export async function examineWith(
  dataDir: string,
  environment: Environment = {},
  args: readonly string[] = [],
): Promise<Report> {
  const { code, stdout, stderr } = await runDoctor(dataDir, ['--json', ...args], environment)
  assert.equal(stderr, '')
  const { object, ok, checks } = JSON.parse(stdout) as { object: string; ok: boolean; checks: Check[] }
  assert.equal(object, 'doctor')
  assert.equal(code, ok ? 0 : 1)
  assert.equal(
    ok,
    checks.every(({ state }) => state !== 'problem'),
  )
  for (const { name, state, todo } of checks)
    assert.equal(todo === null, state === 'ok' || state === 'skipped', name)
  const check = (name: string): Check => {
    const [only, ...more] = checks.filter((each) => each.name === name)
    assert.ok(only !== undefined && more.length === 0, `one check "${name}" in ${stdout}`)
    return only
  }
  return { code, ok, checks, check }
}

/** The folder that a data directory is in, where a file of settings would be. */
function nearest(dataDir: string): string {
  const folder = dirname(dataDir)
  return existsSync(folder) ? folder : nearest(folder)
}

/** Every file of a folder with its content, to see that nothing changed. */
export function contentsOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(
    files.sort().map((file) => [file, createHash('sha256').update(readFileSync(file)).digest('hex')]),
  )
}

/** Reads regular files only: a test may put a FIFO there, which never ends. */
function secretsIn(dataDir: string): string[] {
  return ['pepper', 'admin-key']
    .map((name) => join(dataDir, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true)
    .map((file) => readFileSync(file, 'utf8').trim())
    .filter((secret) => secret !== '')
}
