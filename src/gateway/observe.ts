import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/memory.ts'
import { codingOf } from '../metering/content-coding.ts'
import { type CopyDecoder, decodeCopy } from '../metering/decode-copy.ts'
import { type Meter, MeterAround, type Metered } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter } from '../providers/surfaces.ts'

/**
 * Looks at a reply as it passes. It cannot change or fail it, and never looks away: rather upstream waits. Of a reply
 * that is encoded the meter reads a decoded copy; nothing that goes to the client is touched.
 */
export class Observer extends MeterAround {
  /** Null where there is nothing to decode; `unreadable` where we do not know how. */
  readonly #decoder: CopyDecoder | 'unreadable' | null

  constructor(meter: Meter, decoder: CopyDecoder | 'unreadable' | null) {
    super(meter)
    this.#decoder = decoder
  }

  /** A promise means: the observer is behind, upstream has to wait for it. Null for every reply that is not encoded. */
  see(chunk: Borrowed): Promise<void> | null {
    if (this.#decoder === null) this.inner.write(chunk)
    else if (this.#decoder !== 'unreadable') return this.#decoder.write(chunk)
    return null
  }

  end(whole: boolean): Metered | Promise<Metered> {
    if (this.#decoder === null) return this.inner.end(whole)
    if (this.#decoder === 'unreadable') return { ...this.inner.end(false), faults: ['unreadable'] }
    return this.#decoder.end().then((state) => this.inner.end(whole && state === 'whole'))
  }
}

/**
 * A reply that is held back until it was read anyway may as well wait for the reading; one that streams is delayed only
 * where memory would grow.
 */
export function observe(reader: UsageReader, status: number, headers: RawHeaders, isHeld: boolean): Observer {
  const meter = createMeter(reader, { status, contentType: firstValue(headers, 'content-type') })
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return new Observer(meter, null)
  if (coding === 'unknown') return new Observer(meter, 'unreadable')
  const backlogBytesMax = isHeld ? limits.heldObserverBacklogBytesMax : limits.observerBacklogBytesMax
  const look = (bytes: Borrowed) => meter.write(bytes)
  const decoder = decodeCopy(coding.coding, limits.decodedReplyBytesMax, look, { backlogBytesMax })
  return new Observer(meter, decoder)
}
