import { setTimeout as sleep } from 'node:timers/promises'

/** The pause after a poll during which `wake` was called. */
const WOKEN_POLL_MS = 50

export interface WorkLoopOptions {
  /** Does the available work and returns how long to pause; 0: no pause. */
  poll(): Promise<number>
  /** Returns how long to pause. */
  onFailure(error: unknown): number
  readonly stopping: AbortSignal
}

export type WorkLoop = ReturnType<typeof createWorkLoop>

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
