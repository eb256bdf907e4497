/** Generous on purpose: a deadline turns a hang into a readable failure, and never measures speed. */
export const deadlineMsDefault = 240_000

/** Rejects with `describe()` after the deadline, so that a hanging exchange reports what it had seen. */
export async function withDeadline<T>(
  work: Promise<T>,
  describe: () => string,
  deadlineMs = deadlineMsDefault,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`after ${deadlineMs} ms: ${describe()}`)), deadlineMs)
  // The timer of an exchange that no test awaits must not keep the process alive.
  timer.unref()
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Two iterations of the event loop: bytes written before and after this call arrive as separate reads. */
export async function nextTurn(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
