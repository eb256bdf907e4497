import type { Chunks } from './behaviours.ts'
import { seededChance } from './chance.ts'

const randomPieceBytesMax = 48

/**
 * Cuts a byte stream into pieces that respect no boundary of the content: the rest of one write is
 * sent together with the beginning of the next write.
 */
export interface Slicer {
  push(bytes: Buffer): Buffer[]
  finish(): Buffer[]
}

export function createSlicer(chunks: Chunks): Slicer {
  const chance = seededChance(chunks.kind === 'random' ? chunks.seed : 0)
  const nextSize = (): number =>
    chunks.kind === 'sized' ? chunks.bytes : 1 + Math.floor(chance() * randomPieceBytesMax)
  let rest = Buffer.alloc(0)
  let size = nextSize()
  return {
    push(bytes) {
      let all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      const pieces: Buffer[] = []
      while (all.length >= size) {
        pieces.push(all.subarray(0, size))
        all = all.subarray(size)
        size = nextSize()
      }
      rest = Buffer.from(all)
      return pieces
    },
    finish() {
      const pieces = rest.length === 0 ? [] : [rest]
      rest = Buffer.alloc(0)
      return pieces
    },
  }
}

/** A slicer that leaves each write whole. */
export const wholeWrites: Slicer = {
  push: (bytes) => (bytes.length === 0 ? [] : [bytes]),
  finish: () => [],
}
