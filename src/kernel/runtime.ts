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

/** The source has .ts files, the published package .js files. */
const ENDING = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** `beside`: the URL of the caller's file; `name` is in its folder. The default heap size is that of the main thread. */
export function startThread(
  beside: string,
  name: string,
  workerData?: unknown,
  heapMegabytes?: number,
): Worker {
  // Without this flag, the option of the process overrides the limit: a young generation grew from 8 to 33 MB.
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
