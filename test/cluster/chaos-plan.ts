import type { Random } from '../store/conformance/simulation-random.ts'

/** What is done to the nodes, their wires, the database and the books. A fault lasts; its end is an action, too. */
export type Deed = { readonly what: NodeDeed | WireDeed; readonly node: number } | BookDeed

export type NodeDeed = 'kill node' | 'stop node' | 'pause node' | 'start node' | 'resume node'
export type WireDeed = 'cut wire' | 'mute wire' | 'hold replies' | 'heal wire'
type ServerDeed = 'stop database' | 'start database' | 'pause database' | 'resume database' | 'kill backend'

/** To the database or to what is in it, by way of a node. */
export interface BookDeed {
  readonly what: ServerDeed | 'revoke key' | 'empty cap' | 'top up'
  readonly node: number
  /** Which key, which process. */
  readonly nth: number
}

export interface PlannedDeed {
  readonly atMs: number
  readonly deed: Deed
}

/** Between the beginnings of two faults. */
const GAP_MS = { least: 100, most: 900 }
const LASTING_MS = { least: 200, most: 3_500 }
/** So long after a node was cut off it has answered calls whose settlements wait on its disk. */
const SPOOLED_MS = { least: 4_500, most: 6_000 }
/** A node or a database that starts has a moment before the next thing befalls it. */
const REST_MS = 1_500
/** Longer than a node may be silent: the others give it up. */
const LONG_MS = { least: 16_000, most: 24_000 }

/**
 * All that will be done, and when: a function of the choices alone, not of what becomes of them, so that the same seed
 * gives the same plan. Each node, each wire and the database suffer one thing at a time.
 */
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

/** Some deeds, in ms from their beginning, and what they keep busy. */
interface Fault {
  readonly places: readonly string[]
  readonly planned: readonly PlannedDeed[]
}

/** It dies with settlements that only its disk knows of; what was on the wire is lost with it. */
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
  // Without a database nothing happens at all: that lasts a few seconds at most.
  const ofServer = (what: ServerDeed, end: ServerDeed) =>
    during('database', { what, node, nth }, { what: end, node, nth }, Math.min(endMs, LASTING_MS.most))
  const ofBooks = (what: BookDeed['what']) => once(`books ${nth}`, { what, node, nth })
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
    [2, ofBooks('revoke key')],
    [2, ofBooks('empty cap')],
    [4, ofBooks('top up')],
  ])
}

export function describeDeed({ atMs, deed }: PlannedDeed): string {
  const { what, ...rest } = deed
  const of = Object.entries(rest).map(([name, value]) => `${name} ${value}`)
  return `${(atMs / 1_000).toFixed(3)} s  ${what}, ${of.join(', ')}`
}
