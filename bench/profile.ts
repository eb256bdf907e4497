import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chooseCores, moveTo } from './cores.ts'
import { wholeReplies } from './groups/requests.ts'
import { root } from './machine.ts'
import { type RunningUpstream, runLoad, targetOf, withSubject } from './measure.ts'
import { monotonicNs } from './monotonic.ts'
import { readProfile, type ThreadProfile } from './read-profile.ts'
import { installUndo, makeScratchFolder } from './scratch.ts'
import { FULL } from './sizes.ts'
import type { RunningSubject } from './subjects/subject.ts'
import { tollgate } from './subjects/tollgate.ts'

/**
 * Shows where the time of a request goes: one CPU profile of each of Tollgate's threads under steady load. With
 * `--sockets` the load is the events of so many WebSockets.
 * Run: node bench/profile.ts [--callers 32 | --sockets 300] [--seconds 10] [--bytes 2000] [--top 25] [--keep <folder>]
 */

const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '32' },
    sockets: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    bytes: { type: 'string', default: '2000' },
    top: { type: 'string', default: '25' },
    keep: { type: 'string' },
  },
})
const seconds = Number(values.seconds)
const WARM_UP_SECONDS = values.sockets === undefined ? 4 : 10
const SAMPLE_EVERY_US = 250

installUndo()
const cores = chooseCores()
moveTo(cores.load)

const profiles = await withFolder(async (folder) => {
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${SAMPLE_EVERY_US}`]
  const subject = tollgate({ name: 'tollgate', root, nodeArgs })
  const window = await withSubject(
    subject,
    { ...wholeReplies(FULL.requestBytes), eventsPerSecond: FULL.eventsPerSecond },
    cores,
    async (running, upstream) => {
      if (values.sockets !== undefined) return profileSockets(Number(values.sockets), running, upstream)
      const job = {
        ...targetOf(running, upstream, 'messages'),
        kind: 'requests' as const,
        surface: 'messages' as const,
        requestBytes: Number(values.bytes),
        callers: Number(values.callers),
        warmUpSeconds: 0,
        warmUpRequests: 0,
      }
      await runLoad({ ...job, warmUpSeconds: WARM_UP_SECONDS, seconds: 0 }, cores.load)
      const beganUs = monotonicNs() / 1e3
      const figures = await runLoad({ ...job, seconds }, cores.load)
      return { beganUs, endedUs: monotonicNs() / 1e3, requests: figures['requests'] ?? 0, figures }
    },
  )
  process.stdout.write(`${JSON.stringify(window.figures)}\n`)
  const files = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))
  return files.map((name) => ({ ...readProfile(join(folder, name), window), requests: window.requests }))
})
for (const profile of profiles.sort((a, b) => b.busyUs - a.busyUs)) show(profile, profile.requests)
process.exit()

async function profileSockets(sockets: number, running: RunningSubject, upstream: RunningUpstream) {
  const { eventsPerTurn } = FULL
  const target = targetOf(running, upstream, 'chat')
  const times = { rampSeconds: 1, warmUpSeconds: WARM_UP_SECONDS, seconds }
  const figures = await runLoad(
    { ...target, ...times, kind: 'busy-sockets', sockets, eventsPerTurn },
    cores.load,
  )
  const endedUs = monotonicNs() / 1e3
  const requests = (figures['eventsPerSecond'] ?? 0) * (figures['seconds'] ?? 0)
  return { beganUs: endedUs - seconds * 1e6, endedUs, requests, figures }
}

async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  if (values.keep !== undefined) return work(values.keep)
  return work(makeScratchFolder('profile').path)
}

function show({ name, busyUs, functions, areas, totals }: ThreadProfile, requests: number): void {
  const row = (label: string, us: number): string =>
    `  ${(us / requests).toFixed(1).padStart(8)} ${((us / busyUs) * 100).toFixed(1).padStart(5)} %  ${label}\n`
  process.stdout.write(
    `\n${name}: ${(busyUs / requests).toFixed(0)} µs busy for each of ${requests} requests\n`,
  )
  process.stdout.write('  µs/req        self time of functions\n')
  for (const { label, us } of functions.slice(0, Number(values.top))) process.stdout.write(row(label, us))
  process.stdout.write('  µs/req        self time by place\n')
  for (const { label, us } of areas.slice(0, Number(values.top))) process.stdout.write(row(label, us))
  process.stdout.write('  µs/req        our functions with what they call\n')
  for (const { label, us } of totals.slice(0, Number(values.top))) process.stdout.write(row(label, us))
}
