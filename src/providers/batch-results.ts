import { JsonLines } from '../metering/json-lines.ts'
import { handedOver, objectOf, type Picked, type Place, PRESENCE, SCALAR } from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import type { UsageReader } from './endpoint.ts'
import { isObject } from './request-members.ts'
import { createMeter } from './surfaces.ts'

/** A line of the results of a batch, of Messages and of Chat. */
const LINE: Place = objectOf({
  result: objectOf({ type: SCALAR, message: handedOver(PRESENCE) }),
  response: objectOf({ status_code: SCALAR, body: handedOver(PRESENCE) }),
})

/** Reads the results of a batch as they pass, for the usage of each request that succeeded. Other requests cost nothing. */
export class BatchResults {
  readonly #lines: JsonLines
  readonly #createMeter: () => Meter
  readonly #onSucceeded: (metered: Metered) => void
  #meter: Meter | null = null

  /** `reader` is the reader of replies of the endpoint that the requests are for. */
  constructor(reader: UsageReader, onSucceeded: (metered: Metered) => void) {
    this.#createMeter = () => createMeter(reader, { status: 200, contentType: 'application/json' })
    this.#onSucceeded = onSucceeded
    const walker = new JsonWalker(LINE, {
      tolerant: true,
      onBytes: (bytes) => {
        this.#meter ??= this.#createMeter()
        this.#meter.write(bytes)
      },
    })
    this.#lines = new JsonLines({
      write: (bytes) => walker.write(bytes),
      get failed() {
        return walker.failed
      },
      end: () => {
        const scan = walker.end()
        return (
          scan.kind === 'object' && scan.picked.duplicates.length === 0 && this.#endLine(scan.picked.value)
        )
      },
    })
  }

  write(chunk: Buffer): void {
    this.#lines.write(chunk)
  }

  /** Whether all lines could be read. */
  end(): boolean {
    return this.#lines.end()
  }

  #endLine(line: Picked): boolean {
    const meter = this.#meter ?? this.#createMeter()
    this.#meter = null
    if (hasSucceeded(line)) this.#onSucceeded(meter.end(true))
    return true
  }
}

function hasSucceeded(line: Picked): boolean {
  const { result, response } = isObject(line) ? line : {}
  if (isObject(result)) return result['type'] === 'succeeded'
  const status = isObject(response) ? Number(response['status_code']) : 0
  return status >= 200 && status < 300
}
