import { monotonicNs } from './monotonic.ts'

export interface PacedStream {
  /** Sends an event that bears this time. False when it was the stream's last event. */
  send(nowNs: number): boolean
}

export interface Pacer {
  add(stream: PacedStream): void
}

/**
 * Gives every stream so many events a second, the streams spread evenly over the time between two events. All streams
 * share one timer: two thousand timers would cost more than the writing.
 */
export function createPacer(eventsPerSecond: number): Pacer {
  const slots = Array.from(
    { length: Math.max(1, Math.round(1_000 / eventsPerSecond)) },
    () => new Set<PacedStream>(),
  )
  const beganNs = monotonicNs()
  let nextTick = 0
  let added = 0

  function run(slot: Set<PacedStream>): void {
    for (const stream of slot) {
      if (!stream.send(monotonicNs())) slot.delete(stream)
    }
  }

  setInterval(() => {
    const dueTick = Math.floor((monotonicNs() - beganNs) / 1e6)
    // Events that were missed in a long pause are not made up for: they would be a burst that no provider sends.
    nextTick = Math.max(nextTick, dueTick - slots.length)
    for (; nextTick < dueTick; nextTick += 1) {
      const slot = slots[nextTick % slots.length]
      if (slot !== undefined && slot.size > 0) run(slot)
    }
  }, 1)

  return {
    add(stream) {
      slots[added % slots.length]?.add(stream)
      added += 1
    },
  }
}
