import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock } from '../kernel/clock.ts'

const COUNT = 20
const PAGE_BYTES = 4_096
const TOTAL_MS_MAX = 4_000

/** The name of the file that is written for the measurement, and removed after it. */
export function fsyncFileName(pid: number): string {
  return `.doctor-${pid}.tmp`
}

/** Appends pages as the write-ahead log does, and waits for each to be on the disk. */
export function measureFsync(
  dataDir: string,
  clock: Clock = systemClock,
): { medianMs: number; count: number } | { reason: string } {
  const file = join(dataDir, fsyncFileName(process.pid))
  const page = Buffer.alloc(PAGE_BYTES, 1)
  const tookMs: number[] = []
  try {
    const descriptor = openSync(file, 'wx', 0o600)
    try {
      const startedMs = clock.monotonicMs()
      while (tookMs.length < COUNT && clock.monotonicMs() - startedMs < TOTAL_MS_MAX) {
        const beforeMs = clock.monotonicMs()
        writeSync(descriptor, page)
        fsyncSync(descriptor)
        tookMs.push(clock.monotonicMs() - beforeMs)
      }
    } finally {
      closeSync(descriptor)
      rmSync(file, { force: true })
    }
  } catch (error) {
    return { reason: (error as Error).message }
  }
  tookMs.sort((a, b) => a - b)
  return { medianMs: tookMs[Math.floor(tookMs.length / 2)] ?? 0, count: tookMs.length }
}
