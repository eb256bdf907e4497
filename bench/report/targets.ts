import { keysWorkload } from '../groups/keys.ts'
import { BUILT, startWorkload } from '../groups/start.ts'
import { usageWorkload } from '../groups/usage.ts'
import { medianOf, type Results } from './results.ts'

export interface Judged {
  readonly target: string
  readonly measured: string
  /** Null where the target was not measured. */
  readonly met: boolean | null
}

/** The targets of Tollgate, each judged by the medians of the run. */
export function judgeTargets(results: Results): Judged[] {
  const { sizes } = results
  const get = (workload: string, subject: string, figure: string): number | null =>
    medianOf(results, workload, subject, figure)

  const atLeastTimes = (title: string, workload: string, other: string, factor: number): Judged =>
    judge(
      `${title}: ≥ ${factor} × the requests/s of ${NAMES[other]}`,
      [get(workload, 'tollgate', 'requestsPerSecond'), get(workload, other, 'requestsPerSecond')],
      (own, others) => ({ measured: `${(own / others).toFixed(2)} ×`, met: own >= factor * others }),
    )

  const [one, some] = sizes.callers
  const few = `streams-${sizes.streamsFew}`
  const many = `streams-${sizes.streamsMany}`
  const [keysFew, , keysMost] = sizes.keys
  const usageFew = usageWorkload(sizes.usageCallsFew)
  const usageMany = usageWorkload(sizes.usageCallsMany)
  const started = startWorkload(sizes.startCalls)

  return [
    atLeastTimes(`2 kB, ${some} callers`, `2kB-${some}`, 'pipe', 0.6),
    judge(
      `2 kB, one caller: added p50 over the bare pipe ≤ 0.35 ms`,
      [get(`2kB-${one}`, 'tollgate', 'latencyP50Ms'), get(`2kB-${one}`, 'pipe', 'latencyP50Ms')],
      added('ms', 0.35),
    ),
    atLeastTimes('1 MB requests', '1MB-request', 'pipe', 0.8),
    atLeastTimes('1 MB replies', '1MB-reply', 'pipe', 0.8),
    judge(
      `${sizes.streamsFew} streams: added p99 per event over the bare pipe ≤ 2 ms`,
      [get(few, 'tollgate', 'delayP99Ms'), get(few, 'pipe', 'delayP99Ms')],
      added('ms', 2),
    ),
    judge(
      `${sizes.streamsFew} streams: CPU per event ≤ 1.15 × the bare pipe's`,
      [get(few, 'tollgate', 'cpuMicrosPerEvent'), get(few, 'pipe', 'cpuMicrosPerEvent')],
      timesAtMost(1.15),
    ),
    judge(
      `${sizes.streamsMany} streams: all complete`,
      [get(many, 'tollgate', 'streamsComplete'), get(many, 'tollgate', 'streams')],
      (complete, streams) => ({ measured: `${complete} of ${streams}`, met: complete === streams }),
    ),
    judge(
      `${sizes.streamsMany} streams: ≤ 60 kB of memory per stream`,
      [get(many, 'tollgate', 'memoryKbPerStream')],
      (kb) => ({ measured: `${kb.toFixed(0)} kB`, met: kb <= 60 }),
    ),
    ...sizes.keysInUse.flatMap((inUse) => {
      const [least, most] = [keysWorkload(keysFew, inUse), keysWorkload(keysMost, inUse)]
      return [
        judge(
          `${most}: requests/s within 10 % of those of ${least}`,
          [get(most, 'tollgate', 'requestsPerSecond'), get(least, 'tollgate', 'requestsPerSecond')],
          (many, few) => ({ measured: `${(many / few).toFixed(2)} ×`, met: many >= 0.9 * few }),
        ),
        judge(
          `${most}: CPU per request within 10 % of that of ${least}`,
          [get(most, 'tollgate', 'cpuMicrosPerRequest'), get(least, 'tollgate', 'cpuMicrosPerRequest')],
          timesAtMost(1.1),
        ),
      ]
    }),
    judge(
      `${usageMany}: all reports within 2 × the time of ${usageFew}`,
      [get(usageMany, 'tollgate', 'reportsMs'), get(usageFew, 'tollgate', 'reportsMs')],
      timesAtMost(2),
    ),
    ...['tollgate', `tollgate${BUILT}`].map((subject) =>
      judge(
        `${started}, ${subject}: ready ≤ 0.5 s after the process starts`,
        [get(started, subject, 'startMs')],
        (ms) => ({
          measured: `${(ms / 1_000).toFixed(2)} s`,
          met: ms <= 500,
        }),
      ),
    ),
    judge(
      'soak: memory of the last quarter within 10 % of that of the second',
      [get('soak', 'tollgate', 'memoryGrowthPercent')],
      (percent) => ({ measured: `${percent.toFixed(1)} %`, met: percent <= 10 }),
    ),
  ]
}

const NAMES: Readonly<Record<string, string>> = { pipe: 'the bare pipe' }

type Verdict = { readonly measured: string; readonly met: boolean }

function judge(
  target: string,
  values: readonly (number | null)[],
  decide: (...values: number[]) => Verdict,
): Judged {
  const known = values.filter((value) => value !== null)
  if (known.length < values.length) return { target, measured: 'not measured', met: null }
  return { target, ...decide(...known) }
}

const added =
  (unit: string, most: number) =>
  (own = Number.NaN, base = Number.NaN): Verdict => ({
    measured: `${(own - base).toFixed(2)} ${unit} (${own.toFixed(2)} − ${base.toFixed(2)})`,
    met: own - base <= most,
  })

const timesAtMost =
  (factor: number) =>
  (own = Number.NaN, base = Number.NaN): Verdict => ({
    measured: `${(own / base).toFixed(2)} ×`,
    met: own <= factor * base,
  })
