import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { type CopyDecoder, codingOf, decodeCopy } from '../metering/decode-copy.ts'
import { type Meter, type Metered, NOTHING_SHOWN, type Shown, type Stage } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter } from '../providers/usage/create-meter.ts'

/** Looks at a reply as it passes. It cannot change, delay or fail it. */
export interface Observer {
  see(chunk: Buffer): void
  readonly stage: Stage
  readonly shown: Shown
  readonly visibleBytes: number
  end(whole: boolean): Metered | Promise<Metered>
}

/** The meter reads a copy of what was encoded; nothing that goes to the client is touched. */
export function observe(reader: UsageReader, status: number, headers: RawHeaders): Observer {
  const meter = createMeter(reader, { status, contentType: firstValue(headers, 'content-type') })
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return new PlainObserver(meter)
  if (coding === 'unknown') {
    return {
      see: () => {},
      stage: 'content',
      shown: NOTHING_SHOWN,
      visibleBytes: 0,
      end: () => meter.end(false),
    }
  }
  return observeEncoded(
    meter,
    decodeCopy(coding.coding, limits.decodedReplyBytesMax, (bytes) => meter.write(bytes)),
  )
}

class PlainObserver implements Observer {
  readonly #meter: Meter

  constructor(meter: Meter) {
    this.#meter = meter
  }

  get stage(): Stage {
    return this.#meter.stage
  }

  get shown(): Shown {
    return this.#meter.shown
  }

  get visibleBytes(): number {
    return this.#meter.visibleBytes
  }

  see(chunk: Buffer): void {
    this.#meter.write(chunk)
  }

  end(whole: boolean): Metered {
    return this.#meter.end(whole)
  }
}

function observeEncoded(meter: Meter, decoder: CopyDecoder): Observer {
  let blind = false
  return {
    see(chunk) {
      // The stream does not wait for the copy. If the copy falls too far behind, we look no further.
      if (decoder.pendingBytes > limits.observerBacklogBytesMax) blind = true
      if (!blind) decoder.write(chunk)
    },
    get stage() {
      return meter.stage
    },
    get shown() {
      return meter.shown
    },
    get visibleBytes() {
      return meter.visibleBytes
    },
    async end(whole) {
      const state = await decoder.end()
      return meter.end(whole && !blind && state === 'whole')
    },
  }
}
