import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { type CopyDecoder, codingOf, decodeCopy } from '../metering/decode-copy.ts'
import type { Meter, Metered, Stage } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter } from '../providers/usage/create-meter.ts'

/** Looks at a reply as it passes. It cannot change, delay or fail it. */
export interface Observer {
  see(chunk: Buffer): void
  readonly stage: Stage
  end(whole: boolean): Promise<Metered>
}

/** The meter reads a copy of what was encoded; nothing that goes to the client is touched. */
export function observe(reader: UsageReader, status: number, headers: RawHeaders): Observer {
  const meter = createMeter(reader, { status, contentType: firstValue(headers, 'content-type') })
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return observePlain(meter)
  if (coding === 'unknown') return observeNothing(meter)
  return observeEncoded(
    meter,
    decodeCopy(coding.coding, limits.decodedReplyBytesMax, (bytes) => meter.write(bytes)),
  )
}

function observePlain(meter: Meter): Observer {
  return {
    see: (chunk) => meter.write(chunk),
    get stage() {
      return meter.stage
    },
    end: async (whole) => meter.end(whole),
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
    async end(whole) {
      const state = await decoder.end()
      return meter.end(whole && !blind && state === 'whole')
    },
  }
}

function observeNothing(meter: Meter): Observer {
  return { see: () => {}, stage: 'content', end: async () => meter.end(false) }
}
