import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from './groups/group.ts'
import { requestWorkloads, wholeReplies } from './groups/requests.ts'
import { runLoad, targetOf, withSubject } from './measure.ts'
import { OptionsError } from './options.ts'
import { makeScratchFolder } from './scratch.ts'
import { tollgate } from './subjects/tollgate.ts'

/** What V8 writes at the end of a thread that runs with --cpu-prof. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** Prints the microseconds of each thread per request, by the room (folder of src) that used them. */
export async function profileRooms(plan: Plan, workload: string): Promise<void> {
  const job = requestWorkloads(plan).find(({ name }) => name === workload)
  const parts = plan.tollgates.at(-1)
  if (job === undefined || parts === undefined)
    throw new OptionsError(`--profile: ${workload} is no workload of requests; see --list`)
  const folder = join(makeScratchFolder('profile').path, 'profiles')
  mkdirSync(folder)
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500']
  const requests = await withSubject(
    tollgate({ ...parts, nodeArgs }),
    wholeReplies(job.replyBytes),
    plan.cores,
    async (running, upstream) => {
      // No warm-up: the profile covers the whole run, so every request must count.
      const figures = await runLoad(
        {
          ...targetOf(running, upstream, 'messages'),
          kind: 'requests',
          surface: 'messages',
          requestBytes: job.requestBytes,
          callers: job.callers,
          warmUpSeconds: 0,
          warmUpRequests: 0,
          seconds: plan.warmUpSeconds + 4 * plan.seconds,
        },
        plan.cores.load,
      )
      return figures['requests'] ?? 1
    },
  )
  for (const file of readdirSync(folder)) {
    const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
    process.stdout.write(`\n${file}: µs per request and room\n`)
    for (const [room, micros] of microsByRoom(profile)) {
      if (micros / requests >= 0.5)
        process.stdout.write(`  ${room.padEnd(28)} ${(micros / requests).toFixed(1)}\n`)
    }
  }
}

/** The time of a function of Node or V8 counts for the room that called it. */
function microsByRoom({ nodes, samples, timeDeltas }: CpuProfile): [string, number][] {
  const roomOf = new Map<number, string>()
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const visit = (id: number, outer: string): void => {
    const node = byId.get(id)
    if (node === undefined) return
    const { functionName, url } = node.callFrame
    const own = /\/src\/([^/]+)\//.exec(url)?.[1]
    const room = own ?? (/^\((?:idle|garbage collector|program)\)$/.test(functionName) ? functionName : outer)
    roomOf.set(id, room)
    for (const child of node.children ?? []) visit(child, room)
  }
  visit(nodes[0]?.id ?? 0, '(Node, called by no room)')
  const micros = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const room = roomOf.get(id) ?? '(unknown)'
    micros.set(room, (micros.get(room) ?? 0) + (timeDeltas[index] ?? 0))
  }
  return [...micros].sort((a, b) => b[1] - a[1])
}
