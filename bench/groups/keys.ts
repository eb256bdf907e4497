import { join } from 'node:path'
import { type FillContent, SECRET_KEYS_FILE } from '../fill-plan.ts'
import { filledFolder } from '../filled-folder.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import type { KeysInUse } from '../sizes.ts'
import { type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'
import { wholeReplies } from './requests.ts'

export const keysWorkload = (count: number, inUse: KeysInUse): string =>
  `keys-${shortCount(count)}-${shortCount(inUse.count)}-in-use${inUse.allUsedToday ? '-all-used-today' : ''}`

/** Whether admission gets slower with the number of keys. The number of keys in use stays the same, spread over all keys. */
export function keysGroup(plan: Plan): Group {
  const { keys, keysInUse } = plan.sizes
  return {
    title: `2 kB requests, ${plan.sizes.callers[1]} callers, with ${keys.map(shortCount).join(', ')} keys`,
    cases: keysInUse.flatMap((inUse) =>
      keys.flatMap((count) =>
        plan.tollgates.map((parts) => {
          const content = { keys: count, calls: 0, allUsedToday: inUse.allUsedToday }
          return admissionCase(plan, parts, keysWorkload(count, inUse), content, inUse.count)
        }),
      ),
    ),
  }
}

/** Requests that use `inUse` of the keys of a filled database in turn. */
export function admissionCase(
  { sizes, cores, warmUpSeconds, seconds }: Plan,
  parts: TollgateParts,
  workload: string,
  content: FillContent,
  inUse: number,
): Case {
  return {
    workload,
    subject: parts.name,
    async run() {
      const dataDir = await filledFolder(parts, content)
      const subject = tollgate({ ...parts, dataDir })
      return withSubject(subject, wholeReplies(sizes.requestBytes), cores, (running, upstream) =>
        runLoad(
          {
            ...targetOf(running, upstream, 'messages'),
            kind: 'requests',
            surface: 'messages',
            requestBytes: sizes.requestBytes,
            callers: sizes.callers[1],
            keys: { file: join(dataDir, SECRET_KEYS_FILE), inUse },
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
