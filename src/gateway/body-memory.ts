/** How much memory all waiting request bodies together may take. Who gets no room writes to a temporary file. */
export interface BodyMemory {
  tryTake(bytes: number): boolean
  giveBack(bytes: number): void
}

export function createBodyMemory(bytesMax: number): BodyMemory {
  let takenBytes = 0
  return {
    tryTake(bytes) {
      if (takenBytes + bytes > bytesMax) return false
      takenBytes += bytes
      return true
    },
    giveBack(bytes) {
      takenBytes -= bytes
    },
  }
}
