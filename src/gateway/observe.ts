import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/read-buffer.ts'
import { codingOf } from '../metering/content-coding.ts'
import { type CopyDecoder, decodeCopy } from '../metering/decode-copy.ts'
import { type Meter, type Metered, NOTHING_SHOWN, type Shown, type Stage } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter } from '../providers/usage/create-meter.ts'

/** Looks at a reply as it passes. It cannot change or fail it, and never looks away: rather upstream waits. */
export interface Observer {
  /** A promise means: the observer is behind, upstream has to wait for it. Null for every reply that is not encoded. */
  see(chunk: Borrowed): Promise<void> | null
  readonly stage: Stage
  readonly shown: Shown
  readonly visibleBytes: number
  end(whole: boolean): Metered | Promise<Metered>
}

/**
 * The meter reads a copy of what was encoded; nothing that goes to the client is touched. A reply that is held back
 * until it was read anyway may as well wait for the reading; one that streams is delayed only where memory would grow.
 */
export function observe(reader: UsageReader, status: number, headers: RawHeaders, isHeld: boolean): Observer {
  const meter = createMeter(reader, { status, contentType: firstValue(headers, 'content-type') })
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return new PlainObserver(meter)
  if (coding === 'unknown') {
    return {
      see: () => null,
      stage: 'content',
      shown: NOTHING_SHOWN,
      visibleBytes: 0,
      end: () => meter.end(false),
    }
  }
  const backlogBytesMax = isHeld ? limits.heldObserverBacklogBytesMax : limits.observerBacklogBytesMax
  const look = (bytes: Buffer) => meter.write(bytes)
  return observeEncoded(
    meter,
    decodeCopy(coding.coding, limits.decodedReplyBytesMax, look, { backlogBytesMax }),
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

  see(chunk: Borrowed): null {
    this.#meter.write(chunk)
    return null
  }

  end(whole: boolean): Metered {
    return this.#meter.end(whole)
  }
}

function observeEncoded(meter: Meter, decoder: CopyDecoder): Observer {
  return {
    see: (chunk) => decoder.write(chunk),
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
      return meter.end(whole && state === 'whole')
    },
  }
}
