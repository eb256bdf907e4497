import type { Simulator } from '../../simulator/start-simulator.ts'
import { withDeadline } from './deadline.ts'

/** Resolves once the simulator has counted this many requests, or clients that left. */
export async function untilCounted(
  simulator: Simulator,
  isSo: (counts: Simulator) => boolean,
): Promise<void> {
  const counted = async () => {
    while (!isSo(simulator)) await simulator.counted()
  }
  const describe = () =>
    `${simulator.requests} requests came, ${simulator.aborted} were left; not so: ${isSo}`
  await withDeadline(counted(), describe)
}
