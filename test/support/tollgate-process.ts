import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../../src/config.ts'

const program = fileURLToPath(new URL('../../src/cli/tollgate.ts', import.meta.url))

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The environment of a stranger's shell: none of the variables that would configure a gateway. */
function cleanEnvironment(more: Environment): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^TOLLGATE_|_API_KEY$|^NODE_TEST/.test(name))
  return { ...Object.fromEntries(kept), ...more }
}

/** Runs a command of the program to its end. */
export function runTollgate(
  args: readonly string[],
  environment: Environment = {},
  cwd?: string,
): Promise<Finished> {
  return watch(start(args, environment, cwd)).finished
}

export interface ServingProcess {
  readonly url: string
  readonly banner: string
  readonly dataDir: string
  readonly pid: number
  readonly finished: Promise<Finished>
  signal(name: NodeJS.Signals): void
  /** Closes our end of its output, as a reader does that goes away. */
  stopReading(): void
  /** Kills it if it still runs, and removes its data. */
  dispose(): Promise<void>
}

/** The program as an operator starts it, on a free port and in a folder of its own. Resolves when it serves. */
export async function serveTollgate(environment: Environment = {}): Promise<ServingProcess> {
  const cwd = mkdtempSync(join(tmpdir(), 'tollgate-process-'))
  const child = start(
    ['serve'],
    { TOLLGATE_PORT: '0', TOLLGATE_DATA_DIR: join(cwd, 'data'), ...environment },
    cwd,
  )
  const watched = watch(child)
  const serving = /serves (http:\/\/\S+)[\s\S]*apiKey: process\.env\.KEY \}\)\n\n$/
  const banner = await Promise.race([
    watched.printed(serving),
    watched.finished.then((end) => {
      throw new Error(`it ended with ${end.code} before it served:\n${end.stdout}${end.stderr}`)
    }),
  ])
  return {
    url: serving.exec(banner)?.[1] ?? '',
    banner,
    dataDir: join(cwd, 'data'),
    pid: child.pid ?? 0,
    finished: watched.finished,
    signal: (name) => child.kill(name),
    stopReading() {
      child.stdout?.destroy()
      child.stderr?.destroy()
    },
    async dispose() {
      child.kill('SIGKILL')
      await watched.finished
      rmSync(cwd, { recursive: true, force: true })
    },
  }
}

function start(args: readonly string[], environment: Environment, cwd?: string): ChildProcess {
  return spawn(process.execPath, [program, ...args], {
    env: cleanEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  })
}

function watch(child: ChildProcess) {
  let stdout = ''
  let stderr = ''
  const listeners = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    for (const listener of listeners) listener()
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  const printed = (pattern: RegExp) =>
    new Promise<string>((resolve) => {
      const look = () => {
        if (!pattern.test(stdout)) return
        listeners.delete(look)
        resolve(stdout)
      }
      listeners.add(look)
      look()
    })
  return { finished, printed }
}
