import type { Figures } from '../job.ts'
import { type RunningUpstream, runLoad, targetOf, withSubject } from '../measure.ts'
import { nodesOnPostgres } from '../subjects/nodes.ts'
import type { RunningSubject } from '../subjects/subject.ts'
import { type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import type { Case, Group, Plan } from './group.ts'
import { wholeReplies } from './requests.ts'

/**
 * The same requests with the database in SQLite, and in PostgreSQL with one node and with three; and with many nodes. All
 * are of one key with a budget, of one account with enforced credit, which is where nodes wait for each other.
 */
export function storesGroups(plan: Plan): Group[] {
  const { sizes, tollgates } = plan
  const some = sizes.callers.slice(1).map((callers) => ({
    title: `2 kB requests, ${callers} callers, by database`,
    cases: tollgates.flatMap((parts) => [
      onSqlite(plan, parts, callers),
      ...NODES.map((nodes) => onPostgres(plan, parts, callers, nodes, `stores-${callers}`)),
    ]),
  }))
  const [, , callers] = sizes.callers
  const many = {
    title: `2 kB requests, ${callers} callers, by number of nodes`,
    cases: tollgates.flatMap((parts) =>
      sizes.manyNodes.map((nodes) => onPostgres(plan, parts, callers, nodes, `many-nodes-${callers}`)),
    ),
  }
  return [...some, many]
}

const NODES = [1, 3]

function onSqlite(plan: Plan, parts: TollgateParts, callers: number): Case {
  return {
    workload: `stores-${callers}`,
    subject: inRevision('SQLite', parts),
    run: () =>
      withSubject(tollgate(parts), wholeReplies(plan.sizes.requestBytes), plan.cores, (running, upstream) =>
        load(plan, callers, running, upstream),
      ),
  }
}

function onPostgres(
  plan: Plan,
  parts: TollgateParts,
  callers: number,
  count: number,
  workload: string,
): Case {
  const subject = nodesOnPostgres(parts, count)
  return {
    workload,
    subject: inRevision(subject.name, parts),
    run: () =>
      withSubject(subject, wholeReplies(plan.sizes.requestBytes), plan.cores, async (running, upstream) => {
        const before = running.database.cpuSeconds()
        const figures = await load(plan, callers, running, upstream)
        const used = running.database.cpuSeconds() - before
        // The CPU time of the database includes the warm-up, so its requests are counted too, by its share of the time.
        const asked = (figures['requests'] ?? 0) * (1 + plan.warmUpSeconds / plan.seconds)
        return { ...figures, databaseMicrosPerRequest: (used / Math.max(1, asked)) * 1e6 }
      }),
  }
}

function inRevision(name: string, parts: TollgateParts): string {
  return parts.name === 'tollgate' ? name : `${name} (${parts.name})`
}

function load(
  plan: Plan,
  callers: number,
  running: RunningSubject,
  upstream: RunningUpstream,
): Promise<Figures> {
  return runLoad(
    {
      ...targetOf(running, upstream, 'messages'),
      kind: 'requests',
      surface: 'messages',
      requestBytes: plan.sizes.requestBytes,
      callers,
      warmUpSeconds: plan.warmUpSeconds,
      warmUpRequests: 0,
      seconds: plan.seconds,
    },
    plan.cores.load,
  )
}
