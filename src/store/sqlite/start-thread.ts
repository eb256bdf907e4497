import { Worker } from 'node:worker_threads'
import { limits } from '../../kernel/limits.ts'

/** Source runs as .ts, the published package as .js: a thread's file has the ending of this one. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

export function startThread(name: string, workerData: unknown): Worker {
  return new Worker(new URL(`./${name}${ENDING}`, import.meta.url), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: limits.storeThreadYoungMegabytes },
  })
}
