/** As much as one read of a socket brings. */
const SLAB_BYTES = 64 * 1024

/** Of those that were given back, as many are kept: 16 MiB. */
const SPARE_MAX = 256

/**
 * Memory for bodies that wait until they are whole, used again and again. As buffers of their own, the pieces of large
 * bodies outlive the young generation, and V8 walks its whole heap to find out that they can go: that was a third of
 * what a body of 1 MB cost.
 *
 * Who gives a slab back must be sure that no socket still has it to send.
 */
const spare: Buffer[] = []

export function borrowSlab(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
}

export function giveSlabBack(slab: Buffer): void {
  if (slab.length === SLAB_BYTES && spare.length < SPARE_MAX) spare.push(slab)
}
