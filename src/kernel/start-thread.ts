import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { limits } from './limits.ts'

/** Source runs as .ts, the published package as .js: a thread's file has the ending of this one. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** Starts the file of that name beside the one that asks. Its heap is as large as the main thread's if nothing else is said. */
export function startThread(
  beside: string,
  name: string,
  workerData?: unknown,
  heapMegabytes?: number,
): Worker {
  // What the process was told of young objects has shaped the heap of the main thread long ago. Left standing it would take
  // the place of this thread's limit: with `npm start` the store's grew from 8 to 33 MB after minutes of work.
  setFlagsFromString('--max-semi-space-size=0')
  return new Worker(new URL(`./${name}${ENDING}`, beside), {
    workerData,
    resourceLimits: {
      maxYoungGenerationSizeMb: limits.threadYoungMegabytes,
      ...(heapMegabytes === undefined ? {} : { maxOldGenerationSizeMb: heapMegabytes }),
    },
  })
}
