/**
 * Nanoseconds of the machine's monotonic clock, which all processes share: a time that one process writes into an event
 * can be compared by another. Exact for a hundred days after the machine has started, and good to some nanoseconds then.
 */
export function monotonicNs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e9 + nanoseconds
}
