import { createHash } from 'node:crypto'

/** A small reproducible generator (mulberry32): the same seed gives the same numbers in [0, 1). */
export function seededChance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

export function seedFromText(...texts: readonly (string | Uint8Array)[]): number {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest().readUInt32LE(0)
}

export function pick<Item>(items: readonly [Item, ...Item[]], chance: () => number): Item {
  return items[Math.floor(chance() * items.length)] ?? items[0]
}
