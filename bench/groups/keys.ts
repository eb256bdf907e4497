import { join } from 'node:path'
import { TOLD_KEYS_FILE } from '../fill-plan.ts'
import { filledFolder } from '../filled-folder.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import { type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'
import { wholeReplies } from './requests.ts'

export const keysWorkload = (count: number, inUse: number): string =>
  `keys-${shortCount(count)}-${shortCount(inUse)}-in-use`

/** Whether admission gets slower with the number of keys. As many are in use among few as among many, spread over all. */
export function keysGroup(plan: Plan): Group {
  const { keys, keysInUse } = plan.sizes
  return {
    title: `2 kB requests, ${plan.sizes.callers[1]} callers, with ${keys.map(shortCount).join(', ')} keys`,
    async prepare() {
      for (const parts of plan.tollgates) for (const count of keys) await filledFolder(parts, count, 0)
    },
    cases: keysInUse.flatMap((inUse) =>
      keys.flatMap((count) => plan.tollgates.map((parts) => keysCase(plan, parts, count, inUse))),
    ),
  }
}

function keysCase(plan: Plan, parts: TollgateParts, count: number, inUse: number): Case {
  const { sizes, cores, warmUpSeconds, seconds } = plan
  return {
    workload: keysWorkload(count, inUse),
    subject: parts.name,
    async run() {
      const dataDir = await filledFolder(parts, count, 0)
      const subject = tollgate({ ...parts, dataDir })
      return withSubject(subject, wholeReplies(sizes.requestBytes), cores, (running, upstream) =>
        runLoad(
          {
            ...targetOf(running, upstream, 'messages'),
            kind: 'requests',
            surface: 'messages',
            requestBytes: sizes.requestBytes,
            callers: sizes.callers[1],
            keys: { file: join(dataDir, TOLD_KEYS_FILE), inUse },
            warmUpSeconds,
            warmUpRequests: sizes.warmUpRequests,
            seconds,
          },
          cores.load,
        ),
      )
    },
  }
}
