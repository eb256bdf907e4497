import { parentPort } from 'node:worker_threads'

/** Runs the program for each command line, in this thread, one after the other. */

export interface CommandLine {
  readonly args: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly cwd: string
}

const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] }

type Written = (error?: Error | null) => void

for (const name of ['stdout', 'stderr'] as const) {
  const stream = process[name]
  // Each command adds its own listeners, because a command expects to be the only one of its process.
  stream.setMaxListeners(0)
  stream.write = (chunk: string | Uint8Array, encoding?: BufferEncoding | Written, callback?: Written) => {
    written[name].push(typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk))
    const done = typeof encoding === 'function' ? encoding : callback
    if (done !== undefined) process.nextTick(done)
    return true
  }
}

function takeOutput(name: 'stdout' | 'stderr'): string {
  return Buffer.concat(written[name].splice(0)).toString()
}

let runs = 0

parentPort?.on('message', async (message: CommandLine | 'end') => {
  if (message === 'end') {
    parentPort?.close()
    return
  }
  const { args, environment, cwd } = message
  runs += 1
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  // A thread cannot change its working directory; the program reads it only through this function.
  process.cwd = () => cwd
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args)
  try {
    // The query makes the program another module, which runs again; its imports are already loaded.
    await import(`../../src/cli/tollgate.ts?run=${runs}`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
    process.exitCode = 1
  }
  const code = Number(process.exitCode ?? 0)
  process.exitCode = undefined
  parentPort?.postMessage({ code, signal: null, stdout: takeOutput('stdout'), stderr: takeOutput('stderr') })
})
