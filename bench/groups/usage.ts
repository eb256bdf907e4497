import type { FillContent } from '../fill-plan.ts'
import { filledFolder } from '../filled-folder.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import type { Subject } from '../subjects/subject.ts'
import { ADMIN_KEY, serve, type TollgateParts } from '../subjects/tollgate.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'
import { wholeReplies } from './requests.ts'

export const usageWorkload = (calls: number): string => `usage-${shortCount(calls)}`

/** Few keys, each with many calls, so that reports are as long over few calls as over many. */
const KEYS = 20

const MONTH = 'start=2026-11-01&end=2026-11-30'
const REPORTS = [
  `/v1/usage?${MONTH}`,
  '/v1/usage?start=2026-11-15&end=2026-11-15',
  `/v1/usage?${MONTH}&group_by=day`,
  `/v1/usage?${MONTH}&group_by=model`,
  `/v1/usage?${MONTH}&group_by=key`,
  `/v1/usage?${MONTH}&group_by=day,model`,
  `/v1/usage?${MONTH}&group_by=day,model,key`,
  `/v1/usage?${MONTH}&group_by=day,model,key&format=csv`,
]

/** Whether reports on usage get slower as calls are recorded. */
export function usageGroup(plan: Plan): Group {
  const sizes = [plan.sizes.usageCallsFew, plan.sizes.usageCallsMany]
  return {
    title: `Reports on usage, over ${sizes.map(shortCount).join(' and ')} calls`,
    cases: sizes.flatMap((calls) =>
      plan.tollgates.map((parts) =>
        reportsCase(plan, parts, usageWorkload(calls), { keys: KEYS, calls, allUsedToday: true }, REPORTS),
      ),
    ),
  }
}

/** One operator that asks for reports on a filled database. */
export function reportsCase(
  { cores, seconds, sizes }: Plan,
  parts: TollgateParts,
  workload: string,
  content: FillContent,
  paths: readonly string[],
): Case {
  const subject: Subject = {
    name: parts.name,
    async start(setting) {
      // The folder is used in place: nothing is written to it, and a copy would take longer than the measurement.
      const { started, url } = await serve(parts, setting, await filledFolder(parts, content))
      return {
        urls: [url],
        headers: () => [['authorization', `Bearer ${ADMIN_KEY}`]],
        pids: () => [started.pid],
        stop: () => started.stop(),
      }
    },
  }
  return {
    workload,
    subject: parts.name,
    run: () =>
      withSubject(subject, wholeReplies(sizes.requestBytes), cores, (running, upstream) =>
        runLoad({ ...targetOf(running, upstream, 'messages'), kind: 'reports', paths, seconds }, cores.load),
      ),
  }
}
