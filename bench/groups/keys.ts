import { join } from 'node:path'
import { TOLD_KEYS_FILE } from '../fill-plan.ts'
import { filledFolder } from '../filled-folder.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import { type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'
import { wholeReplies } from './requests.ts'

export const keysWorkload = (count: number): string => `keys-${shortCount(count)}`

/** With far more of them in use. */
export const farKeysWorkload = (count: number, inUse: number): string =>
  `${keysWorkload(count)}-${shortCount(inUse)}-in-use`

/**
 * Whether admission gets slower with the number of keys. As many are in use among few as among many, spread over all;
 * then far more of them.
 */
export function keysGroup(plan: Plan): Group {
  const { keys, keysInUse } = plan.sizes
  const [same, far] = keysInUse
  const most = Math.max(...keys)
  return {
    title: `2 kB requests, ${plan.sizes.callers[1]} callers, with ${keys.map(shortCount).join(', ')} keys`,
    async prepare() {
      for (const parts of plan.tollgates) for (const count of keys) await filledFolder(parts, count, 0)
    },
    cases: [
      ...keys.map((count) => ({ workload: keysWorkload(count), count, inUse: same })),
      { workload: farKeysWorkload(most, far), count: most, inUse: far },
    ].flatMap((used) => plan.tollgates.map((parts) => keysCase(plan, parts, used))),
  }
}

interface UsedKeys {
  readonly workload: string
  readonly count: number
  readonly inUse: number
}

function keysCase(plan: Plan, parts: TollgateParts, { workload, count, inUse }: UsedKeys): Case {
  const { sizes, cores, warmUpSeconds, seconds } = plan
  return {
    workload,
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
