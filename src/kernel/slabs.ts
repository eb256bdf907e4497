interface Size {
  readonly bytes: number
  /** Of those that were given back, as many are kept: 25 MiB of all sizes together. */
  readonly sparesMax: number
  readonly spares: Buffer[]
}

/** As much as one read of a socket brings. */
const LARGEST: Size = { bytes: 64 * 1024, sparesMax: 256, spares: [] }

/** Most bodies are small, and many wait at once: each gets memory that fits. */
const SIZES: readonly Size[] = [
  { bytes: 1024, sparesMax: 1024, spares: [] },
  { bytes: 4 * 1024, sparesMax: 1024, spares: [] },
  { bytes: 16 * 1024, sparesMax: 256, spares: [] },
  LARGEST,
]

/**
 * Memory for bodies that wait until they are whole, used again and again. As buffers of their own, the pieces of large
 * bodies outlive the young generation, and V8 walks its whole heap to find out that they can go: that was a third of
 * what a body of 1 MB cost. Small ones cost 2 µs each to get and to give back.
 *
 * Who gives a slab back must be sure that no socket still has it to send.
 */
export function borrowSlab(bytes: number): Buffer {
  const size = SIZES.find((candidate) => bytes <= candidate.bytes) ?? LARGEST
  return size.spares.pop() ?? Buffer.allocUnsafeSlow(size.bytes)
}

export function giveSlabBack(slab: Buffer): void {
  const size = SIZES.find((candidate) => candidate.bytes === slab.length)
  if (size !== undefined && size.spares.length < size.sparesMax) size.spares.push(slab)
}
