import { readFileSync } from 'node:fs'
import { root } from './machine.ts'

export interface TimeAt {
  readonly label: string
  readonly us: number
}

export interface ThreadProfile {
  readonly name: string
  /** The time of the thread without its idle time. */
  readonly busyUs: number
  readonly functions: readonly TimeAt[]
  /** The same time by file, or by module of Node's. */
  readonly areas: readonly TimeAt[]
  /** Functions of ours with all that they call. Code after an `await` counts for the function that awaited. */
  readonly totals: readonly TimeAt[]
}

interface ProfileNode {
  readonly id: number
  readonly children?: readonly number[]
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
}

interface Profile {
  readonly nodes: readonly ProfileNode[]
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** Self time in a profile of V8's, between two moments of the monotonic clock. */
export function readProfile(
  file: string,
  { beganUs, endedUs }: { readonly beganUs: number; readonly endedUs: number },
): ThreadProfile {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const byFunction = new Map<string, number>()
  const byArea = new Map<string, number>()
  const add = (sums: Map<string, number>, label: string, us: number): void => {
    sums.set(label, (sums.get(label) ?? 0) + us)
  }
  const selfUs = new Map<number, number>()
  let busyUs = 0
  let atUs = profile.startTime
  for (const [i, id] of profile.samples.entries()) {
    // A sample counts for the time until the next one.
    atUs += profile.timeDeltas[i] ?? 0
    const us = profile.timeDeltas[i + 1] ?? 0
    const frame = nodes.get(id)?.callFrame
    if (frame === undefined || atUs < beganUs || atUs > endedUs || frame.functionName === '(idle)') continue
    busyUs += us
    selfUs.set(id, (selfUs.get(id) ?? 0) + us)
    const place = placeOf(frame.url)
    add(byArea, place === '' ? frame.functionName : place, us)
    add(byFunction, labelOf(frame), us)
  }
  const sorted = (sums: Map<string, number>): TimeAt[] =>
    [...sums].map(([label, us]) => ({ label, us })).sort((a, b) => b.us - a.us)
  const isStore = profile.nodes.some((node) => node.callFrame.url.endsWith('/store/sqlite/worker.ts'))
  const isMain = profile.nodes.some((node) => node.callFrame.url.endsWith('/cli/tollgate.ts'))
  return {
    name: isStore ? 'store thread' : isMain ? 'main thread' : 'another thread',
    busyUs,
    functions: sorted(byFunction),
    areas: sorted(byArea),
    totals: sorted(totalsOf(nodes, selfUs)),
  }
}

/** Total times; a function counts once on a path, however often it stands there. */
function totalsOf(
  nodes: ReadonlyMap<number, ProfileNode>,
  selfUs: ReadonlyMap<number, number>,
): Map<string, number> {
  const totals = new Map<string, number>()
  function visit(id: number, above: ReadonlySet<string>): number {
    const node = nodes.get(id)
    if (node === undefined) return 0
    const label = labelOf(node.callFrame)
    const within = new Set(above).add(label)
    let us = selfUs.get(id) ?? 0
    for (const child of node.children ?? []) us += visit(child, within)
    const ours = placeOf(node.callFrame.url).startsWith('src/')
    if (ours && us > 0 && !above.has(label)) totals.set(label, (totals.get(label) ?? 0) + us)
    return us
  }
  const [first] = nodes.keys()
  if (first !== undefined) visit(first, new Set())
  return totals
}

function labelOf({ functionName, url, lineNumber }: ProfileNode['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  const place = placeOf(url)
  return place === '' ? name : `${name}  ${place}:${lineNumber + 1}`
}

function placeOf(url: string): string {
  return url.replace('file://', '').replace(`${root}/`, '')
}
