import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FillContent, SECRET_KEYS_FILE } from '../fill-plan.ts'
import { filledFolder } from '../filled-folder.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import { makeScratchFolder } from '../scratch.ts'
import type { KeysInUse } from '../sizes.ts'
import { createKey, type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import { type Case, type Group, type Plan, shortCount } from './group.ts'
import { wholeReplies } from './requests.ts'

export const keysWorkload = (count: number, inUse: KeysInUse): string =>
  `keys-${shortCount(count)}-${shortCount(inUse.count)}-in-use${inUse.allUsedToday ? '-all-used-today' : ''}`

const FEW_KEYS_WORKLOAD = 'few-keys-32-in-use'
const FEW_KEYS = 32

/** As many keys as callers: a batch of the database then has the rows of several keys. The keys are made over the API. */
export function fewKeysGroup({ sizes, tollgates, cores, warmUpSeconds, seconds }: Plan): Group {
  return {
    title: `2 kB requests, ${sizes.callers[1]} callers, ${FEW_KEYS} keys in use`,
    cases: tollgates.map((parts) => ({
      workload: FEW_KEYS_WORKLOAD,
      subject: parts.name,
      run: () =>
        withSubject(tollgate(parts), wholeReplies(sizes.requestBytes), cores, async (running, upstream) => {
          const secrets: string[] = []
          while (secrets.length < FEW_KEYS) secrets.push(await createKey(running.urls[0] ?? ''))
          const file = join(makeScratchFolder('keys').path, SECRET_KEYS_FILE)
          writeFileSync(file, secrets.join('\n'))
          return runLoad(
            {
              ...targetOf(running, upstream, 'messages'),
              kind: 'requests',
              surface: 'messages',
              requestBytes: sizes.requestBytes,
              callers: sizes.callers[1],
              keys: { file, inUse: FEW_KEYS },
              warmUpSeconds,
              warmUpRequests: sizes.warmUpRequests,
              seconds,
            },
            cores.load,
          )
        }),
    })),
  }
}

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
