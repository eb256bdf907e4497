import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'

/** package.json stands two folders above the source and three above the published build. */
export const VERSION: string = ((): string => {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const file = readFileSync(new URL(path, import.meta.url), 'utf8')
      return String((JSON.parse(file) as { version: unknown }).version)
    } catch {
      // package.json is at the other path.
    }
  }
  return 'unknown'
})()

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
  // Left standing, the process's own option would replace this thread's limit: the store's young heap grew from 8 to 33 MB.
  setFlagsFromString('--max-semi-space-size=0')
  return new Worker(new URL(`./${name}${ENDING}`, beside), {
    workerData,
    resourceLimits: {
      maxYoungGenerationSizeMb: THREAD_YOUNG_MEGABYTES,
      ...(heapMegabytes === undefined ? {} : { maxOldGenerationSizeMb: heapMegabytes }),
    },
  })
}

/**
 * V8 is to collect old objects when they have doubled. By itself it waits for up to four times as many, and malloc keeps
 * their memory: 40 MB more at 2,000 requests a second, at no less CPU. To be called when the start is over: the code that Node
 * brings compiled is compiled anew under another option, which costs 85 ms.
 */
export function tuneHeap(): void {
  setFlagsFromString('--heap-growing-percent=100')
}
