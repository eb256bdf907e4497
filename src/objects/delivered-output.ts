import { RecentEntries } from '../kernel/recent-entries.ts'
import { type Delivered, type Metered, nothingDelivered } from '../metering/meter.ts'

const OBJECTS_MIN = 5_000

/** The largest output that a client read of each object, for objects that state no usage. */
export class DeliveredOutput {
  readonly #largest = new RecentEntries<Delivered>(OBJECTS_MIN)

  record(objectId: string, output: Delivered): void {
    const known = this.#largest.get(objectId) ?? nothingDelivered()
    if (bytesOf(output) > bytesOf(known)) this.#largest.set(objectId, output)
  }

  addTo(objectId: string, metered: Metered): Metered {
    const output = this.#largest.get(objectId) ?? metered.output
    return bytesOf(output) > bytesOf(metered.output) ? { ...metered, output } : metered
  }
}

function bytesOf({ text, thinking, tool }: Delivered): number {
  return text + thinking + tool
}
