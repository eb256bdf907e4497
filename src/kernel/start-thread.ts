import { Worker } from 'node:worker_threads'
import { leaveYoungHeapToThreads } from './node-internals.ts'

/** Megabytes for young objects of a thread beside the main one. V8 would take 48 in time, and nothing is faster for it. */
export const THREAD_YOUNG_MEGABYTES = 12

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
      maxYoungGenerationSizeMb: THREAD_YOUNG_MEGABYTES,
      ...(heapMegabytes === undefined ? {} : { maxOldGenerationSizeMb: heapMegabytes }),
    },
  })
}
