import { setTimeout as sleep } from 'node:timers/promises'

/** Time is injected, so that tests can move it. No other code calls Date.now(). */
export interface Clock {
  nowMs(): number
  /** Monotonic time, for durations. A wall clock can be set back, which would make a duration negative. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** The pause after a poll during which `wake` was called. */
const WOKEN_POLL_MS = 50

/** Minimum interval between log lines about the same problem. */
export const WARN_INTERVAL_MS = 60_000

/** Throttles `notify` to one call per `ms`; calls in between are dropped. */
export function atMostEvery<T>(ms: number, clock: Clock, notify: (what: T) => void): (what: T) => void {
  let notifiedMs = -Infinity
  return (what) => {
    if (clock.monotonicMs() - notifiedMs < ms) return
    notifiedMs = clock.monotonicMs()
    notify(what)
  }
}

/** Resolves to the result, or to null if it fails or takes too long. */
export function unlessLate<T>(result: Promise<T>, withinMs: number): Promise<T | null> {
  return Promise.race([result.catch(() => null), sleep(withinMs, null, { ref: false })])
}

/** Polls until `isQuiet` returns true, but at most for `withinMs`. */
export async function untilQuiet(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!isQuiet() && performance.now() < deadline) await sleep(10)
}

export interface WorkLoopOptions {
  /** Does the available work and returns how long to pause; 0: no pause. */
  poll(): Promise<number>
  /** Returns how long to pause. */
  onFailure(error: unknown): number
  readonly stopping: AbortSignal
}

/** Polls for background work. Its timers do not keep the process alive. */
export function createWorkLoop({ poll, onFailure, stopping }: WorkLoopOptions) {
  let isWoken = false
  let endPause = () => {}
  let running: Promise<void> = Promise.resolve()

  async function run(): Promise<void> {
    while (!stopping.aborted) {
      isWoken = false
      const pauseMs = await poll().catch(onFailure)
      if (pauseMs === 0 || stopping.aborted) continue
      // The running poll may have missed the new work. One more poll serves all wakes during the pause.
      if (isWoken) await sleep(WOKEN_POLL_MS)
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

  /** Ends the pause, because there may be new work. */
  function wake(): void {
    isWoken = true
    endPause()
  }

  stopping.addEventListener('abort', wake, { once: true })
  return {
    start(): void {
      running = run()
    },
    wake,
    /** Resolves when the running poll has ended, after `stopping`. */
    ended: (): Promise<void> => running,
  }
}

/** Loads a module on demand, but at the latest after `afterMs`: an upgrade may replace the files. */
export function loadLater<T>(load: () => Promise<T>, afterMs: number | null) {
  let loading: Promise<T> | null = null
  const get = (): Promise<T> => {
    // A load may fail temporarily, for example without free file descriptors: the next call tries again.
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }
  // If this load fails, the next `get` tries again and reports the error.
  const timer = afterMs === null ? undefined : setTimeout(() => get().catch(() => {}), afterMs)
  timer?.unref()
  return { get, cancel: (): void => clearTimeout(timer) }
}

/** Callers that arrive while the work runs, or within `freshMs` after its success, share its result. */
export function shareWork<T>(
  work: () => Promise<T>,
  { monotonicMs }: Pick<Clock, 'monotonicMs'>,
  freshMs: (tookMs: number) => number,
): () => Promise<T> {
  let shared: Promise<T> | null = null
  let freshUntilMs = Infinity
  return () => {
    const beganMs = monotonicMs()
    if (shared !== null && beganMs < freshUntilMs) return shared
    freshUntilMs = Infinity
    shared = work()
    shared.then(
      () => {
        const endedMs = monotonicMs()
        freshUntilMs = endedMs + freshMs(endedMs - beganMs)
      },
      () => {
        shared = null
      },
    )
    return shared
  }
}
