import { Worker } from 'node:worker_threads'
import { limits } from './limits.ts'
import { leaveYoungHeapToThreads } from './node-internals.ts'

/** Source runs as .ts, the published package as .js: a thread's file has the ending of this one. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** Starts a thread with the file `name` beside the caller's file. Its heap is as large as the main thread's if none is given. */
export function startThread(
  beside: string,
  name: string,
  workerData?: unknown,
  heapMegabytes?: number,
): Worker {
  leaveYoungHeapToThreads()
  return new Worker(new URL(`./${name}${ENDING}`, beside), {
    workerData,
    resourceLimits: {
      maxYoungGenerationSizeMb: limits.threadYoungMegabytes,
      ...(heapMegabytes === undefined ? {} : { maxOldGenerationSizeMb: heapMegabytes }),
    },
  })
}
