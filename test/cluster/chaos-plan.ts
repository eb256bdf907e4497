import type { Random } from '../support/random.ts'

/** An action on the nodes, their connections, the database or the ledger. Ending a fault is another one. */
export type Deed = { readonly what: NodeDeed | WireDeed; readonly node: number } | LedgerDeed

export type NodeDeed = 'kill node' | 'stop node' | 'pause node' | 'start node' | 'resume node'
export type WireDeed = 'cut wire' | 'mute wire' | 'hold replies' | 'heal wire'
type ServerDeed = 'stop database' | 'start database' | 'pause database' | 'resume database' | 'kill backend'

export interface LedgerDeed {
  readonly what: ServerDeed | 'revoke key' | 'empty cap' | 'top up'
  readonly node: number
  readonly nth: number
}

export interface PlannedDeed {
  readonly atMs: number
  readonly deed: Deed
}

const GAP_MS = { least: 100, most: 900 }
const LASTING_MS = { least: 200, most: 3_500 }
/** How long after a disconnection a node has answered calls whose settlements wait on its disk. */
const SPOOLED_MS = { least: 4_500, most: 6_000 }
/** The pause of a node or database between its start and its next fault. */
const REST_MS = 1_500
/** Faults longer than the permitted silence of a node: the other nodes fence it. */
const LONG_MS = { least: 16_000, most: 24_000 }

/** All actions with their times: one seed gives one plan. Each target has one fault at a time. */
export function planDeeds(random: Random, forMs: number, nodes: number): readonly PlannedDeed[] {
  const deeds: PlannedDeed[] = []
  const busyUntilMs = new Map<string, number>()
  for (let atMs = 0; ; ) {
    atMs += random.from(GAP_MS.least, GAP_MS.most)
    if (atMs >= forMs) break
    const node = random.below(nodes)
    const { places, planned } = random.oneIn(10) ? cutOffAndKill(random, node) : chooseFault(random, node)
    if (places.some((place) => (busyUntilMs.get(place) ?? 0) > atMs)) continue
    const begunMs = atMs
    const own = planned.map(({ atMs: afterMs, deed }) => ({ atMs: Math.min(forMs, begunMs + afterMs), deed }))
    deeds.push(...own)
    for (const place of places) busyUntilMs.set(place, (own.at(-1)?.atMs ?? atMs) + REST_MS)
  }
  return deeds.toSorted((a, b) => a.atMs - b.atMs)
}

interface Fault {
  readonly places: readonly string[]
  readonly planned: readonly PlannedDeed[]
}

/** The node dies with settlements that are only on its disk; bytes on the connection are lost with it. */
function cutOffAndKill(random: Random, node: number): Fault {
  const killMs = random.from(SPOOLED_MS.least, SPOOLED_MS.most)
  const endMs = killMs + random.from(LASTING_MS.least, LASTING_MS.most)
  return {
    places: [`node ${node}`, `wire ${node}`],
    planned: [
      { atMs: 0, deed: { what: 'mute wire', node } },
      { atMs: killMs, deed: { what: 'kill node', node } },
      { atMs: killMs, deed: { what: 'cut wire', node } },
      { atMs: endMs, deed: { what: 'heal wire', node } },
      { atMs: endMs, deed: { what: 'start node', node } },
    ],
  }
}

function chooseFault(random: Random, node: number): Fault {
  const nth = random.below(1_000)
  const lasting = random.oneIn(8) ? LONG_MS : LASTING_MS
  const endMs = random.from(lasting.least, lasting.most)
  const once = (place: string, deed: Deed): Fault => ({ places: [place], planned: [{ atMs: 0, deed }] })
  const during = (place: string, deed: Deed, end: Deed, lastsMs = endMs): Fault => ({
    places: [place],
    planned: [
      { atMs: 0, deed },
      { atMs: lastsMs, deed: end },
    ],
  })
  const ofNode = (what: NodeDeed, end: NodeDeed) =>
    during(`node ${node}`, { what, node }, { what: end, node })
  const ofWire = (what: WireDeed) => during(`wire ${node}`, { what, node }, { what: 'heal wire', node })
  // A fault of the database lasts a few seconds at most, because nothing happens without it.
  const ofServer = (what: ServerDeed, end: ServerDeed) =>
    during('database', { what, node, nth }, { what: end, node, nth }, Math.min(endMs, LASTING_MS.most))
  const ofLedger = (what: LedgerDeed['what']) => once(`ledger ${nth}`, { what, node, nth })
  return random.weighted([
    [5, ofNode('kill node', 'start node')],
    [3, ofNode('stop node', 'start node')],
    [5, ofNode('pause node', 'resume node')],
    [4, ofWire('mute wire')],
    [3, ofWire('hold replies')],
    [3, once(`wire ${node}`, { what: 'cut wire', node })],
    [2, ofServer('stop database', 'start database')],
    [2, ofServer('pause database', 'resume database')],
    [2, once('database', { what: 'kill backend', node, nth })],
    [2, ofLedger('revoke key')],
    [2, ofLedger('empty cap')],
    [4, ofLedger('top up')],
  ])
}

export function describeDeed({ atMs, deed }: PlannedDeed): string {
  const { what, ...rest } = deed
  const of = Object.entries(rest).map(([name, value]) => `${name} ${value}`)
  return `${(atMs / 1_000).toFixed(3)} s  ${what}, ${of.join(', ')}`
}
