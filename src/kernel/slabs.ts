const KiB = 1024
const MiB = 1024 * KiB

interface Size {
  readonly bytes: number
  /** Of those that were given back, as many are kept: 40 MiB of all sizes together. */
  readonly sparesMax: number
  readonly spares: Buffer[]
}

function sizeOf(bytes: number, spareBytesMax: number): Size {
  return { bytes, sparesMax: spareBytesMax / bytes, spares: [] }
}

/** As much as one read of a socket brings. */
const LARGEST = sizeOf(64 * KiB, 16 * MiB)

/** Most bodies are small, and many wait at once: from a KiB on none in one piece gets twice the memory it needs. */
const SIZES: readonly Size[] = [
  ...[KiB, 2 * KiB, 4 * KiB, 8 * KiB, 16 * KiB, 32 * KiB].map((bytes) => sizeOf(bytes, 4 * MiB)),
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
