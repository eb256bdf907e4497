import { type Borrowed, viewOf } from '../kernel/memory.ts'
import type { Usage } from '../kernel/usage.ts'
import { handedOver, objectOf, type Place, TEXT } from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import { createMeter } from './surfaces.ts'

const NESTED = objectOf({ event: handedOver(TEXT) })
const DECISION = objectOf({ event: objectOf({ decision: handedOver(TEXT) }) })

/** The event of a delegated response, as it is written inside of an event of the session. */
export function nestedEvent(text: Buffer): Buffer | null {
  return jsonAt(NESTED, text)
}

/** What a decision has used, which a session has had made; null where it does not say. */
export function decisionUsage(text: Buffer): Usage | null {
  const decision = jsonAt(DECISION, text)
  if (decision === null) return null
  const meter = createMeter('decisions', { status: 200, contentType: 'application/json' })
  meter.write(decision)
  const { usage, inputKnown, outputKnown } = meter.end(true)
  return inputKnown && outputKnown ? usage : null
}

function jsonAt(place: Place, text: Buffer): Buffer | null {
  const pieces: Buffer[] = []
  const onBytes = (bytes: Borrowed) => {
    pieces.push(Buffer.from(viewOf(bytes)))
  }
  const walker = new JsonWalker(place, { tolerant: true, onBytes })
  walker.write(text)
  const scan = walker.end()
  return scan.kind === 'unreadable' || pieces.length === 0 ? null : Buffer.concat(pieces)
}
