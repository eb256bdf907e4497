import { RecentEntries } from '../kernel/recent-entries.ts'
import { type Delivered, deliveredBytes, type Metered, nothingDelivered } from '../metering/meter.ts'

const OBJECTS_MIN = 5_000

/** The largest output that a client read of each object, for objects that state no usage. */
export class DeliveredOutput {
  readonly #largest = new RecentEntries<Delivered>(OBJECTS_MIN)

  record(objectId: string, output: Delivered): void {
    const known = this.#largest.get(objectId) ?? nothingDelivered()
    if (deliveredBytes(output) > deliveredBytes(known)) this.#largest.set(objectId, output)
  }

  addTo(objectId: string, metered: Metered): Metered {
    const output = this.#largest.get(objectId) ?? metered.output
    return deliveredBytes(output) > deliveredBytes(metered.output) ? { ...metered, output } : metered
  }
}
