import { limits } from '../kernel/limits.ts'

/**
 * How much memory bodies of one kind may take together, and those of one key of what others leave. Who gets no room finds
 * another way: streaming.
 */
export interface ByteBudget {
  tryTake(bytes: number, keyName: string): boolean
  giveBack(bytes: number, keyName: string): void
}

export function createByteBudget(bytesMax: number): ByteBudget {
  let takenBytes = 0
  const byKey = new Map<string, number>()
  return {
    tryTake(bytes, keyName) {
      const ownBytes = byKey.get(keyName) ?? 0
      const leftBytes = bytesMax - (takenBytes - ownBytes)
      if (ownBytes + bytes > leftBytes * limits.bodiesPartPerKeyMax) return false
      takenBytes += bytes
      byKey.set(keyName, ownBytes + bytes)
      return true
    },
    giveBack(bytes, keyName) {
      takenBytes -= bytes
      const ownBytes = (byKey.get(keyName) ?? 0) - bytes
      if (ownBytes > 0) byKey.set(keyName, ownBytes)
      else byKey.delete(keyName)
    },
  }
}
