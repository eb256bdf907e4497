import type { Behaviours } from './behaviours.ts'
import { pick, seededChance, seedFromText } from './chance.ts'
import type { Surface } from './refusal.ts'

/** A fault that happens at random. A request can also ask for each kind of fault by name. */
type Fault = (nth: number) => Behaviours

const faults: readonly [Fault, ...Fault[]] = [
  () => ({ status: 429 }),
  () => ({ status: 500 }),
  () => ({ status: 503 }),
  () => ({ status: 529 }),
  () => ({ reset: true }),
  () => ({ cut: { kind: 'mid-event' } }),
  () => ({ errorEvent: 2 }),
  () => ({ noUsage: true }),
  () => ({ dripMs: 20 }),
  () => ({ delayMs: 200 }),
  (nth) => ({ chunks: { kind: 'random', seed: nth } }),
]

/**
 * The fault of the nth request, or none. The fault depends on seed, rate and position only: a run that sends
 * its requests in the same order meets the same faults.
 */
export function drawFault(seed: number, faultRate: number, nth: number, surface: Surface): Behaviours {
  if (faultRate <= 0) return {}
  const chance = seededChance(seedFromText(`${seed}/${nth}`))
  if (chance() >= faultRate) return {}
  const fault = pick(faults, chance)(nth)
  // 529 is a status of the Messages surface; the Chat surface says 503 for the same thing.
  return surface === 'chat' && fault.status === 529 ? { status: 503 } : fault
}
