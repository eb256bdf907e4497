/** Words are five times as fast as bytes. Memory of our own is aligned, that of a pool need not be. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)
const words = new Int32Array(scratch.buffer)

/** From here on the two copies through the scratch memory cost less than going byte by byte. */
const WORDS_FROM_BYTES = 64

/** The key as it applies from this place of a frame's payload on: a payload comes in parts that end anywhere. */
export function keyAt(key: number, payloadAt: number): number {
  const bits = (payloadAt & 3) * 8
  return bits === 0 ? key : (key >>> bits) | (key << (32 - bits))
}

/** A copy of `from` to `to` without the mask; `key` has the byte that is applied first lowest. */
export function unmasked(wire: Buffer, from: number, to: number, key: number): Buffer {
  const bytes = to - from
  const payload = Buffer.allocUnsafe(bytes)
  if (bytes < WORDS_FROM_BYTES) {
    for (let i = 0; i < bytes; i++) payload[i] = (wire[from + i] ?? 0) ^ (key >>> ((i & 3) * 8))
    return payload
  }
  for (let done = 0; done < bytes; done += scratch.length) {
    const step = Math.min(bytes - done, scratch.length)
    wire.copy(scratch, 0, from + done, from + done + step)
    const wordsEnd = (step + 3) >>> 2
    for (let i = 0; i < wordsEnd; i++) words[i] = (words[i] ?? 0) ^ key
    scratch.copy(payload, done, 0, step)
  }
  return payload
}
