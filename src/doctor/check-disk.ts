import { inBytes, inMs } from './amounts.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'
import type { DiskFacts } from './data-dir-facts.ts'

const MB = 1_000_000
const GB = 1_000 * MB
const SPACE = { problem: { bytes: 100 * MB, share: 0.01 }, warning: { bytes: GB, share: 0.05 } } as const

/** A hundredth of a large disk is room for years: a share counts only where it leaves less than this. */
const SHARE_COUNTS_BELOW_BYTES = 20 * GB
const FSYNC_MS_MAX = 20

export function checkSpace({ freeBytes, totalBytes }: Pick<DiskFacts, 'freeBytes' | 'totalBytes'>): Check {
  const share = totalBytes === 0 ? 0 : freeBytes / totalBytes
  const isBelow = (least: { readonly bytes: number; readonly share: number }): boolean =>
    freeBytes < least.bytes || (share < least.share && freeBytes < SHARE_COUNTS_BELOW_BYTES)
  const found = `${inBytes(freeBytes)} free of ${inBytes(totalBytes)} (${(share * 100).toFixed(1)} %)`
  const todo = 'Make room, or move the data directory: with a full disk no call can be admitted.'
  if (isBelow(SPACE.problem)) return problem('disk_space', found, todo)
  return isBelow(SPACE.warning) ? warning('disk_space', found, todo) : ok('disk_space', found)
}

export function checkSpeed(fsync: DiskFacts['fsync']): Check {
  if (fsync === null) return skipped('disk_speed', 'measured when the data directory can be written to')
  if ('reason' in fsync) {
    return problem(
      'disk_speed',
      `a file in the data directory could not be written: ${fsync.reason}`,
      'Make room on the disk, and see that it is not mounted read-only.',
    )
  }
  const found = `${inMs(fsync.medianMs)} until a write is on the disk (median of ${fsync.count})`
  if (fsync.medianMs <= FSYNC_MS_MAX) return ok('disk_speed', found)
  return warning(
    'disk_speed',
    `${found}, and every call waits for one before it goes upstream`,
    'Put the data directory on a local solid-state disk; network file systems are slow at this, and unsafe.',
  )
}
