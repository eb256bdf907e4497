/** How much memory bodies of one kind may take together. Who gets no room finds another way: a file, or streaming. */
export interface ByteBudget {
  tryTake(bytes: number): boolean
  giveBack(bytes: number): void
}

export function createByteBudget(bytesMax: number): ByteBudget {
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
