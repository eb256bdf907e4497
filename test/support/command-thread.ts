import { Worker } from 'node:worker_threads'
import type { Environment } from '../../src/config/read-config.ts'
import type { CommandLine } from './command-thread-program.ts'
import { withDeadline } from './deadline.ts'
import { cleanEnvironment, type Finished, runTollgate } from './tollgate-process.ts'

/** A process per command takes half a second to load. Signals, terminals and input need a process. */
let thread: Worker | null = null
let former: Promise<unknown> = Promise.resolve()

/** Runs a command to its end, after the previous commands. */
export function runInThread(
  args: readonly string[],
  environment: Environment = {},
  cwd = process.cwd(),
): Promise<Finished> {
  const run = () => finish({ args, environment: cleanEnvironment(environment), cwd })
  const finished = former.then(run)
  former = finished.catch(() => {})
  return finished
}

const known = new Set<string>()

/** The first command of each name is a process, with real pipes and exit code; later ones share a thread. */
export function runCommand(
  args: readonly string[],
  environment: Environment = {},
  cwd?: string,
): Promise<Finished> {
  const [command = ''] = args
  const run = known.has(command) ? runInThread : runTollgate
  known.add(command)
  return run(args, environment, cwd)
}

/** How long open sockets and files of a command may take to close. */
const ENDING_MS = 30_000

function start(): Worker {
  const worker = new Worker(new URL('command-thread-program.ts', import.meta.url))
  // A thread stopped while Node wrote to one of its sockets was once seen to wait for that write forever.
  process.once('beforeExit', () => {
    worker.ref()
    worker.postMessage('end')
    setTimeout(() => worker.terminate(), ENDING_MS).unref()
  })
  return worker
}

async function finish(line: CommandLine): Promise<Finished> {
  thread ??= start()
  const worker = thread
  const shown = `tollgate ${line.args.join(' ')}`
  const { promise, resolve, reject } = Promise.withResolvers<Finished>()
  const fail = (reason: unknown) =>
    reject(new Error(`${shown} needs a process of its own: it ends with ${reason}`))
  worker.once('message', resolve).once('exit', fail).once('error', fail)
  // An idle thread must not keep the tests alive; a thread with a pending command must.
  worker.ref()
  worker.postMessage(line)
  try {
    return await withDeadline(promise, () => `${shown} does not end`)
  } finally {
    worker.off('message', resolve).off('exit', fail).off('error', fail)
    worker.unref()
  }
}
