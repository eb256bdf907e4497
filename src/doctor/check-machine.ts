import type { Environment } from '../config.ts'
import { type Check, inBytes, inMs, inTime, verdicts } from './check.ts'
import type { DiskFacts } from './examiner.ts'

const NODE_MAJOR_MIN = 24

export interface Runtime {
  readonly version: string
  readonly execArgv: readonly string[]
  readonly environment: Environment
}

export function checkRuntime({ version, execArgv, environment }: Runtime): Check {
  const { ok, problem } = verdicts('runtime')
  if (Number.parseInt(version, 10) < NODE_MAJOR_MIN)
    return problem(`Node.js ${version}`, `Install Node.js ${NODE_MAJOR_MIN} or newer.`)
  const flags = [...execArgv, ...(environment['NODE_OPTIONS'] ?? '').split(/\s+/)]
  // The insecure parser accepts a request with two lengths, which is how a second request is smuggled behind a first.
  if (flags.some((flag) => /^--insecure[-_]http[-_]parser$/.test(flag)))
    return problem(
      `Node.js ${version} with --insecure-http-parser, which lets requests be smuggled past the checks`,
      'Take it out of the command line and of NODE_OPTIONS.',
    )
  return ok(`Node.js ${version}`)
}

const OPEN_FILES_MIN = 4_096

/** A call takes two open files: a socket to the client, one to upstream. `limits` is the text of /proc/self/limits. */
export function checkOpenFiles(limits: string | null): Check {
  const { ok, skipped, warning } = verdicts('open_files')
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits ?? '')?.[1]
  if (soft === undefined) return skipped('this system does not tell how many may be open')
  if (soft === 'unlimited' || Number(soft) >= OPEN_FILES_MIN) return ok(`${soft} may be open at once`)
  return warning(
    `only ${soft} may be open at once, and a call takes two: some ${Math.floor(Number(soft) / 2)} calls at a time`,
    `Raise it to ${OPEN_FILES_MIN} or more: ulimit -n, LimitNOFILE= of a systemd unit, --ulimit of a container.`,
  )
}

const MB = 1_000_000
const GB = 1_000 * MB
const SPACE = { problem: { bytes: 100 * MB, share: 0.01 }, warning: { bytes: GB, share: 0.05 } } as const
/** A hundredth of a large disk is room for years: a share counts only where it leaves less than this. */
const SHARE_COUNTS_BELOW_BYTES = 20 * GB

export function checkSpace({ freeBytes, totalBytes }: Pick<DiskFacts, 'freeBytes' | 'totalBytes'>): Check {
  const { ok, warning, problem } = verdicts('disk_space')
  const share = totalBytes === 0 ? 0 : freeBytes / totalBytes
  const isBelow = (least: { readonly bytes: number; readonly share: number }): boolean =>
    freeBytes < least.bytes || (share < least.share && freeBytes < SHARE_COUNTS_BELOW_BYTES)
  const found = `${inBytes(freeBytes)} free of ${inBytes(totalBytes)} (${(share * 100).toFixed(1)} %)`
  const todo = 'Make room, or move the data directory: with a full disk no call can be admitted.'
  if (isBelow(SPACE.problem)) return problem(found, todo)
  return isBelow(SPACE.warning) ? warning(found, todo) : ok(found)
}

const FSYNC_MS_MAX = 20

export function checkSpeed(fsync: DiskFacts['fsync']): Check {
  const { ok, skipped, warning, problem } = verdicts('disk_speed')
  if (fsync === null) return skipped('measured when the data directory can be written to')
  if ('reason' in fsync)
    return problem(
      `a file in the data directory could not be written: ${fsync.reason}`,
      'Make room on the disk, and see that it is not mounted read-only.',
    )
  const found = `${inMs(fsync.medianMs)} until a write is on the disk (median of ${fsync.count})`
  if (fsync.medianMs <= FSYNC_MS_MAX) return ok(found)
  return warning(
    `${found}, and every call waits for one before it goes upstream`,
    'Put the data directory on a local solid-state disk; network file systems are slow at this, and unsafe.',
  )
}

const CLOCK_WARNING_MS = 5_000
const CLOCK_PROBLEM_MS = 60_000
/** A Date header tells whole seconds: on average the header is half a second behind. */
const HALF_SECOND_MS = 500

export interface HostClock {
  readonly host: string
  readonly reading: ClockReading
}

/** The time by an upstream's clock, and the time by ours just before upstream was asked and just after it answered. */
export interface ClockReading {
  readonly upstreamMs: number
  readonly beforeMs: number
  readonly afterMs: number
}

/** The upstream that agrees best decides: a self-hosted server's clock may be wrong where a provider's is right. */
export function checkClock(readings: readonly HostClock[]): Check {
  const { ok, skipped, warning, problem } = verdicts('clock')
  const [best] = readings
    .map(({ host, reading }) => ({ host, aheadMs: aheadOf(reading) }))
    .sort((a, b) => Math.abs(a.aheadMs) - Math.abs(b.aheadMs))
  if (best === undefined) return skipped('no upstream told its time')
  const { host, aheadMs } = best
  const offMs = Math.abs(aheadMs)
  if (offMs <= CLOCK_WARNING_MS) return ok(`agrees with ${host}`)
  const found = `this machine is ${inTime(offMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} ${host}`
  const todo = 'Set the clock and keep it right with NTP: months, expiries and prices go by it.'
  return offMs > CLOCK_PROBLEM_MS ? problem(found, todo) : warning(found, todo)
}

/** The least that our clock can be ahead: upstream wrote its answer at any moment between the question and the arrival. */
function aheadOf({ upstreamMs, beforeMs, afterMs }: ClockReading): number {
  const tellsMs = upstreamMs + HALF_SECOND_MS
  if (beforeMs > tellsMs) return beforeMs - tellsMs
  return afterMs < tellsMs ? afterMs - tellsMs : 0
}
