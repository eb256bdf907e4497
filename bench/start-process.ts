import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { undoOnExit } from './scratch.ts'

export interface ProcessPlan {
  readonly command: string
  readonly args: readonly string[]
  readonly core: number | null
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The target of the process's error output: a file, or our own error output. */
  readonly errors: { readonly file: string } | 'shown'
}

export interface StartedProcess {
  readonly pid: number
  readonly child: ChildProcess
  /** Resolves when the process has ended. */
  readonly ended: Promise<number | null>
  /** Resolves when the output matches; rejects when the process ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
  /** Asks the process to stop, and kills it if it does not. */
  stop(graceMs?: number): Promise<void>
}

const STOP_GRACE_MS = 3_000
const OUTPUT_CHARS_MAX = 1024 * 1024

/** The environment of a stranger's shell: no variable that would configure or instrument the subject. */
function cleanEnvironment(): Record<string, string | undefined> {
  const foreign = /^TOLLGATE_|_API_KEY$|^NODE_OPTIONS$|^NODE_TEST/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
}

/** Starts a process pinned to a core. The process dies with the run. */
export function startProcess(plan: ProcessPlan): StartedProcess {
  const pinned = plan.core === null ? [] : ['taskset', '-c', String(plan.core)]
  // taskset becomes the program: the process id is the program's own.
  const [file = '', ...args] = [...pinned, plan.command, ...plan.args]
  const log = plan.errors === 'shown' ? null : openSync(plan.errors.file, 'a')
  const child = spawn(file, args, {
    env: { ...cleanEnvironment(), ...plan.env },
    stdio: ['pipe', 'pipe', log ?? 'inherit'],
    ...(plan.cwd === undefined ? {} : { cwd: plan.cwd }),
  })
  if (log !== null) closeSync(log)
  const forget = undoOnExit(() => child.kill('SIGKILL'))
  child.stdin?.on('error', () => {})

  let output = ''
  const lookers = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-OUTPUT_CHARS_MAX)
    for (const look of lookers) look()
  })
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      forget()
      resolve(code)
    })
    child.once('error', () => {
      forget()
      resolve(null)
    })
  })

  return {
    pid: child.pid ?? 0,
    child,
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output)
          if (match === null) return
          lookers.delete(look)
          resolve(match)
        }
        lookers.add(look)
        look()
        ended.then((code) => {
          look()
          reject(
            new Error(`${plan.command} ${plan.args.join(' ')} ended with ${code}: ${output.slice(-500)}`),
          )
        })
      }),
    async stop(graceMs = STOP_GRACE_MS) {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await ended
      clearTimeout(timer)
    },
  }
}

/** A port that was free a moment ago, for programs that cannot choose one themselves. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
