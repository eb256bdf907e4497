import type { Clock } from './clock.ts'

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
