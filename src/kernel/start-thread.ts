import { Worker } from 'node:worker_threads'
import { limits } from './limits.ts'

/** Source runs as .ts, the published package as .js: a thread's file has the ending of this one. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/**
 * Starts the file of that name beside the one that asks. V8 forgets a thread's limit wherever it was given one for the
 * whole process; `cli/tollgate.ts` sees to that.
 */
export function startThread(beside: string, name: string, workerData?: unknown): Worker {
  return new Worker(new URL(`./${name}${ENDING}`, beside), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: limits.threadYoungMegabytes },
  })
}
