/** A part of the program that the start does not wait for. */
export interface Later<T> {
  get(): Promise<T>
  /** It is no longer loaded by itself. */
  leave(): void
}

/**
 * Loads it when it is first asked for, or by itself after a while: if the program's files are replaced
 * under a running gateway, it must not load half of another version hours later.
 */
export function loadLater<T>(load: () => Promise<T>, afterMs: number): Later<T> {
  let loading: Promise<T> | null = null
  const get = (): Promise<T> => {
    // What could not be loaded now, for want of descriptors perhaps, may be the next time.
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }
  // If it fails, the next `get` tries again and tells.
  const timer = setTimeout(() => get().catch(() => {}), afterMs)
  timer.unref()
  return { get, leave: () => clearTimeout(timer) }
}
