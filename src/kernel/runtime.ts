import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'

/** package.json is two folders above the source and three above the published build. */
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

/** Young generation of worker threads, in megabytes. V8 would grow it to 48 without being faster. */
export const THREAD_YOUNG_MEGABYTES = 12

/** Source runs as .ts, the published package as .js: a thread's file has this file's extension. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** The file `name` is next to the caller's. Without a size, the heap is as large as the main thread's. */
export function startThread(
  beside: string,
  name: string,
  workerData?: unknown,
  heapMegabytes?: number,
): Worker {
  // Otherwise the process's option overrides the limit: the store's young generation grew from 8 to 33 MB.
  setFlagsFromString('--max-semi-space-size=0')
  return new Worker(new URL(`./${name}${ENDING}`, beside), {
    workerData,
    resourceLimits: {
      maxYoungGenerationSizeMb: THREAD_YOUNG_MEGABYTES,
      ...(heapMegabytes === undefined ? {} : { maxOldGenerationSizeMb: heapMegabytes }),
    },
  })
}

/** V8's default takes 40 MB more at 2,000 requests/s. Call it after startup: it recompiles Node's code in 85 ms. */
export function tuneHeap(): void {
  setFlagsFromString('--heap-growing-percent=100')
}
