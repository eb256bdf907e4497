import type { Plan } from './groups/group.ts'
import { requestWorkloads, wholeReplies } from './groups/requests.ts'
import { runLoad, targetOf, withSubject } from './measure.ts'
import { OptionsError } from './options.ts'
import { threadSeconds } from './read-proc.ts'
import { median } from './report/median.ts'

const ROUND_SECONDS = 2
/** The run ends when both ratios are known to within this share, with 95 % confidence. */
const PRECISION = 0.03
const PAIRS_MIN = 6
const PAIRS_MAX = 60

/** One short measurement of one subject. */
interface Round {
  readonly requestsPerSecond: number
  /**
   * Processor time per request: all threads, the main thread, the busiest other thread, which is the database's, and the
   * rest, in which V8 compiles and collects garbage.
   */
  readonly cpuMicros: number
  readonly mainMicros: number
  readonly databaseMicros: number
  readonly helperMicros: number
}

const FIGURES = [
  'requestsPerSecond',
  'cpuMicros',
  'mainMicros',
  'databaseMicros',
  'helperMicros',
] as const satisfies readonly (keyof Round)[]

type Measure = (isWarm: boolean) => Promise<Round>

/**
 * Measures two warm subjects in short rounds in the order A B B A. The noise of a shared machine changes slowly, so it
 * meets both rounds of a pair alike, and each pair gives one ratio.
 */
export async function runAbba(plan: Plan, workload: string): Promise<void> {
  const [base, own] = plan.subjects
  if (base === undefined || own === undefined || plan.subjects.length > 2)
    throw new OptionsError('--abba needs two subjects: --subjects pipe,tollgate or --compare <rev>')
  await withWarm(plan, workload, own, (measureOwn) =>
    withWarm(plan, workload, base, async (measureBase) => {
      const pairs: { own: Round; base: Round }[] = []
      while (pairs.length < PAIRS_MAX) {
        const isOwnFirst = pairs.length % 2 === 0
        const first = await (isOwnFirst ? measureOwn : measureBase)(true)
        const second = await (isOwnFirst ? measureBase : measureOwn)(true)
        pairs.push(isOwnFirst ? { own: first, base: second } : { own: second, base: first })
        const ratioOf = (figure: keyof Round) =>
          estimate(pairs.map((pair) => pair.own[figure] / pair.base[figure]))
        const ratios = [ratioOf('requestsPerSecond'), ratioOf('cpuMicros')] as const
        process.stderr.write(
          `  pair ${pairs.length}: requests/s ${ratios[0].shown}, CPU ${ratios[1].shown}\n`,
        )
        if (pairs.length >= PAIRS_MIN && ratios.every(({ error }) => error <= PRECISION)) break
      }
      process.stdout.write(`\n${workload}, ${own.name} ÷ ${base.name}, medians of ${pairs.length} pairs\n`)
      for (const figure of FIGURES) process.stdout.write(`  ${figureLine(figure, pairs)}\n`)
    }),
  )
}

function figureLine(figure: keyof Round, pairs: readonly { readonly own: Round; readonly base: Round }[]) {
  const [mine, theirs] = (['own', 'base'] as const).map((side) =>
    median(pairs.map((pair) => pair[side][figure])).toFixed(0),
  )
  const line = `${figure.padEnd(18)} ${mine} ÷ ${theirs}`
  // The bare pipe has one thread.
  if (pairs.some((pair) => pair.own[figure] === 0 || pair.base[figure] === 0)) return line
  return `${line} = ${estimate(pairs.map((pair) => pair.own[figure] / pair.base[figure])).shown}`
}

/** Starts a subject with an upstream of its own, warms it up, and hands over the function that measures one round. */
function withWarm(
  plan: Plan,
  workload: string,
  subject: Plan['subjects'][number],
  work: (measure: Measure) => Promise<void>,
): Promise<void> {
  const job = requestWorkloads(plan).find(({ name }) => name === workload)
  if (job === undefined) throw new OptionsError(`--abba: ${workload} is no workload of requests; see --list`)
  return withSubject(subject, wholeReplies(job.replyBytes), plan.cores, async (running, upstream) => {
    const [pid = 0] = running.pids()
    const measure: Measure = async (isWarm) => {
      const before = threadSeconds(pid)
      const figures = await runLoad(
        {
          ...targetOf(running, upstream, 'messages'),
          kind: 'requests',
          surface: 'messages',
          requestBytes: job.requestBytes,
          callers: job.callers,
          warmUpSeconds: isWarm ? 0 : plan.warmUpSeconds,
          warmUpRequests: isWarm ? 0 : job.warmUpRequests,
          warmUpCallers: isWarm ? job.callers : job.warmUpCallers,
          seconds: ROUND_SECONDS,
        },
        plan.cores.load,
      )
      const { requests = 1, requestsPerSecond = 0, cpuMicrosPerRequest = 0 } = figures
      const used = [...threadSeconds(pid)].map(([thread, seconds]) => ({
        isMain: thread === pid,
        micros: ((seconds - (before.get(thread) ?? 0)) / requests) * 1e6,
      }))
      const mainMicros = used.find(({ isMain }) => isMain)?.micros ?? 0
      const [databaseMicros = 0, ...helpers] = used
        .flatMap(({ isMain, micros }) => (isMain ? [] : micros))
        .sort((a, b) => b - a)
      const helperMicros = helpers.reduce((sum, micros) => sum + micros, 0)
      return {
        requestsPerSecond,
        cpuMicros: cpuMicrosPerRequest,
        mainMicros,
        databaseMicros,
        helperMicros,
      }
    }
    await measure(false)
    await work(measure)
  })
}

/** The geometric mean of ratios, and the half width of its 95 % confidence interval as a share of it. */
function estimate(ratios: readonly number[]): { readonly error: number; readonly shown: string } {
  const logs = ratios.map(Math.log)
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / Math.max(1, logs.length - 1)
  const error = 2 * Math.sqrt(variance / logs.length) || 0
  return { error, shown: `${Math.exp(mean).toFixed(3)} ± ${(error * 100).toFixed(1)} %` }
}
