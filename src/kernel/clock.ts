import { setTimeout as sleep } from 'node:timers/promises'

/** Time is injected: tests move it, the store compares against it, and nothing else calls Date.now(). */
export interface Clock {
  /** Wall-clock time, for instants that people and records see. */
  nowMs(): number
  /** Monotonic time, for durations; a stepped wall clock must not give a negative latency. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** A look for work of webhooks or deferred calls that was woken while it ran is followed by another look so soon. */
const WOKEN_LOOK_MS = 50

/** How often the log says the same trouble again. */
export const WARN_INTERVAL_MS = 60_000

/** Calls `notify` no more often than every `ms`; calls in between are dropped. */
export function atMostEvery<T>(ms: number, clock: Clock, notify: (what: T) => void): (what: T) => void {
  let toldMs = -Infinity
  return (what) => {
    if (clock.monotonicMs() - toldMs < ms) return
    toldMs = clock.monotonicMs()
    notify(what)
  }
}

/** The result of `asked`; null if it fails or takes too long. */
export function unlessLate<T>(asked: Promise<T>, withinMs: number): Promise<T | null> {
  return Promise.race([asked.catch(() => null), sleep(withinMs, null, { ref: false })])
}

/** Resolves when `isQuiet` says so, or after `withinMs`. */
export async function untilQuiet(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!isQuiet() && performance.now() < deadline) await sleep(10)
}

export interface WorkLoop {
  start(): void
  /** There may be work that was not there a moment ago: the pause ends. */
  wake(): void
  /** Resolves when the look that is under way has ended, after `stopping`. */
  ended(): Promise<void>
}

export interface WorkLook {
  /** Does the work that there is, and says how long to pause then; 0 for no pause. */
  look(): Promise<number>
  /** A look has failed. How long to pause. */
  onFailure(error: unknown): number
  readonly stopping: AbortSignal
}

/** Polls for work beside the calls. Its timers do not hold the process open. */
export function createWorkLoop({ look, onFailure, stopping }: WorkLook): WorkLoop {
  let isWoken = false
  let endPause = () => {}
  let running: Promise<void> = Promise.resolve()

  async function run(): Promise<void> {
    while (!stopping.aborted) {
      isWoken = false
      const pauseMs = await look().catch(onFailure)
      if (pauseMs === 0 || stopping.aborted) continue
      // The look may have come too early for the work it was woken for; and of many wakes in a row not each gets a look.
      if (isWoken) await sleep(WOKEN_LOOK_MS)
      else await pause(pauseMs)
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  function wake(): void {
    isWoken = true
    endPause()
  }

  stopping.addEventListener('abort', wake, { once: true })
  return {
    start() {
      running = run()
    },
    wake,
    ended: () => running,
  }
}

/** A part of the program that the start does not wait for. */
export interface Later<T> {
  get(): Promise<T>
  /** The part is no longer loaded by itself. */
  leave(): void
}

/** Loads a part on demand, or after `afterMs`: files replaced under a running gateway must not be loaded hours later. */
export function loadLater<T>(load: () => Promise<T>, afterMs: number | null): Later<T> {
  let loading: Promise<T> | null = null
  const get = (): Promise<T> => {
    // A part that could not be loaded now, for want of descriptors perhaps, may be loaded the next time.
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }
  // If this load fails, the next `get` tries again and reports the error.
  const timer = afterMs === null ? undefined : setTimeout(() => get().catch(() => {}), afterMs)
  timer?.unref()
  return { get, leave: () => clearTimeout(timer) }
}
