/** Beyond these the uses are written even if nothing else is. */
const NOTED_MAX = 200

/**
 * Uses of keys that wait to be written together with something else. A crash may lose them: what a key was admitted
 * for says itself when it was used.
 */
export interface NotedUses {
  /** By key, the latest instant. */
  readonly latest: ReadonlyMap<string, number>
  note(keyId: string, atMs: number): void
  /** Whether they can wait for more. */
  canWait(): boolean
  /** After they were committed. */
  clear(): void
}

export function createNotedUses(): NotedUses {
  const latest = new Map<string, number>()
  let noted = 0
  return {
    latest,
    note(keyId, atMs) {
      noted += 1
      latest.set(keyId, Math.max(atMs, latest.get(keyId) ?? atMs))
    },
    canWait: () => noted < NOTED_MAX,
    clear() {
      noted = 0
      latest.clear()
    },
  }
}
