import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../../src/config/read-config.ts'
import { withDeadline } from './deadline.ts'
import { createTestDatabase, databaseVariable } from './test-store.ts'

/** Node alone cannot open a pseudo-terminal, and a bare machine has no other tool. */
const pretendTerminal = new URL('pretend-terminal.ts', import.meta.url).href
/** The program and its first arguments. */
export type Program = readonly [file: string, ...args: string[]]

const SOURCE: Program = [
  process.execPath,
  fileURLToPath(new URL('../../src/cli/tollgate.ts', import.meta.url)),
]

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The environment of a new user's shell, without variables that configure a gateway. */
export function cleanEnvironment(more: Environment): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^TOLLGATE_|_API_KEY$|^NODE_TEST/.test(name))
  return { ...Object.fromEntries(kept), ...more }
}

export function runTollgate(
  args: readonly string[],
  environment: Environment = {},
  cwd?: string,
  program = SOURCE,
): Promise<Finished> {
  return watch(start(args, environment, cwd, 'ignore', program)).finished
}

export interface CommandOptions {
  /** The standard input of the command; empty by default. */
  readonly input?: string
  /** The command takes its output, or only stderr, for a terminal with this many columns. */
  readonly terminal?: { readonly columns: number; readonly only?: 'stderr' }
}

export interface RunningCommand {
  readonly finished: Promise<Finished>
  signal(name: NodeJS.Signals): void
  printed(pattern: RegExp): Promise<string>
  printedToStderr(pattern: RegExp): Promise<string>
  /** Closes our end of its output, as `head` does. */
  stopReading(): void
}

/** Starts a command of the program, with its output in a pipe or a pretended terminal. */
export function startCommand(
  args: readonly string[],
  environment: Environment = {},
  { input = '', terminal }: CommandOptions = {},
): RunningCommand {
  const pretence =
    terminal === undefined
      ? {}
      : { NODE_OPTIONS: `--import=${pretendTerminal}`, PRETEND_TERMINAL: JSON.stringify(terminal) }
  const child = start(args, { ...environment, ...pretence }, undefined, 'pipe')
  // The command may end without having read its input.
  child.stdin?.on('error', () => {}).end(input)
  const { finished, printed, printedToStderr } = watch(child)
  const soon = (output: Promise<string>, pattern: RegExp) =>
    withDeadline(output, () => `tollgate ${args.join(' ')} has not printed ${pattern}`)
  return {
    finished,
    printed: (pattern) => soon(printed(pattern), pattern),
    printedToStderr: (pattern) => soon(printedToStderr(pattern), pattern),
    signal: (name) => child.kill(name),
    stopReading: () => child.stdout?.destroy(),
  }
}

export interface ServingProcess extends AsyncDisposable {
  readonly url: string
  readonly banner: string
  readonly dataDir: string
  /** Null: the database is in the data directory. */
  readonly databaseUrl: string | null
  /** The variables with which a command finds this gateway and its database, and a restart finds its data. */
  readonly environment: Readonly<Record<string, string>>
  readonly pid: number
  readonly finished: Promise<Finished>
  /** Creates a key with the admin key of its data directory. */
  createKey(fields?: object): Promise<string>
  signal(name: NodeJS.Signals): void
  /** Resolves when its stdout, or its stderr, matches. */
  printed(pattern: RegExp): Promise<string>
  printedToStderr(pattern: RegExp): Promise<string>
  /** Closes our end of its output, like a reader that goes away. */
  stopReading(): void
  /** Stops reading its output and leaves it open, like a paused terminal. */
  pauseReading(): void
  dispose(): Promise<void>
}

/** On a free port, in a new folder, on a new database or the named one. Resolves when it serves. */
export async function serveTollgate(
  environment: Environment = {},
  program = SOURCE,
): Promise<ServingProcess> {
  const cwd = mkdtempSync(join(tmpdir(), 'tollgate-process-'))
  const dataDir = environment['TOLLGATE_DATA_DIR'] ?? join(cwd, 'data')
  const given = environment['TOLLGATE_DATABASE_URL']
  const place =
    given === undefined ? await createTestDatabase() : { databaseUrl: given || null, remove: async () => {} }
  const storage = { TOLLGATE_DATA_DIR: dataDir, ...databaseVariable(place) }
  // On PostgreSQL, the simulator serves only on request.
  const hasUpstream = Object.keys(environment).some((name) =>
    /^TOLLGATE_(?:MESSAGES|CHAT)_(?:URL|KEY)$/.test(name),
  )
  const simulator = place.databaseUrl === null || hasUpstream ? {} : { TOLLGATE_SIMULATOR: 'true' }
  const variables = { TOLLGATE_PORT: '0', ...simulator, ...environment, ...storage }
  const child = start(['serve'], variables, cwd, 'ignore', program)
  const watched = watch(child)
  const serving = /serves (https?:\/\/\S+)[\s\S]*apiKey: process\.env\.TOLLGATE_KEY \}\)\n\n$/
  const banner = await Promise.race([
    watched.printed(serving),
    watched.finished.then((end) => {
      throw new Error(`it ended with ${end.code} before it served:\n${end.stdout}${end.stderr}`)
    }),
  ])
  const url = serving.exec(banner)?.[1] ?? ''
  return {
    url,
    banner,
    dataDir,
    databaseUrl: place.databaseUrl,
    environment: { ...storage, TOLLGATE_URL: url },
    pid: child.pid ?? 0,
    finished: watched.finished,
    async createKey(fields = { name: 'x' }) {
      const authorization = `Bearer ${readFileSync(join(dataDir, 'admin-key'), 'utf8').trim()}`
      const init = { method: 'POST', headers: { authorization }, body: JSON.stringify(fields) }
      const { key } = (await (await fetch(`${url}/v1/keys`, init)).json()) as { key: string }
      return key
    },
    signal: (name) => child.kill(name),
    printed: watched.printed,
    printedToStderr: watched.printedToStderr,
    stopReading() {
      child.stdout?.destroy()
      child.stderr?.destroy()
    },
    pauseReading: () => child.stdout?.pause(),
    async dispose() {
      child.kill('SIGKILL')
      child.stdout?.resume()
      await watched.finished
      await place.remove()
      rmSync(cwd, { recursive: true, force: true })
    },
    [Symbol.asyncDispose](this: ServingProcess) {
      return this.dispose()
    },
  }
}

function start(
  args: readonly string[],
  environment: Environment,
  cwd?: string,
  stdin: 'ignore' | 'pipe' = 'ignore',
  [file, ...first]: Program = SOURCE,
): ChildProcess {
  return spawn(file, [...first, ...args], {
    env: cleanEnvironment(environment),
    stdio: [stdin, 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
}

function watch(child: ChildProcess) {
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) =>
      resolve({ code, signal, stdout: stdout.text(), stderr: stderr.text() }),
    )
  })
  return { finished, printed: stdout.matches, printedToStderr: stderr.matches }
}

/** The text of a stream so far, and a promise that resolves when it matches a pattern. */
function collect(stream: Readable | null) {
  let text = ''
  const listeners = new Set<() => void>()
  stream?.setEncoding('utf8').on('data', (more: string) => {
    text += more
    for (const listener of listeners) listener()
  })
  return {
    text: () => text,
    matches: (pattern: RegExp) =>
      new Promise<string>((resolve) => {
        const look = () => {
          if (!pattern.test(text)) return
          listeners.delete(look)
          resolve(text)
        }
        listeners.add(look)
        look()
      }),
  }
}
