import { type Borrowed, viewOf } from '../kernel/memory.ts'
import type { Usage } from '../kernel/usage.ts'
import { handedOver, objectOf, type Place, scalars, TEXT } from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import { readJson } from '../metering/reply-meter.ts'
import { createMeter } from './surfaces.ts'
import { Counts, objectAt } from './usage/reading.ts'

const NESTED = objectOf({ event: handedOver(TEXT) })
const DECISION = objectOf({ event: objectOf({ decision: handedOver(TEXT) }) })

/** The event of a delegated response, as it is written inside of an event of the session. */
export function nestedEvent(text: Buffer): Buffer | null {
  return jsonAt(NESTED, text)
}

const RESPONSE = objectOf({ response: objectOf({ usage: objectOf(scalars('input_tokens output_tokens')) }) })

/** What a delegated response has read and written, as its last event says; null where it does not. */
export function usedTokens(event: Buffer): number | null {
  const document = readJson(RESPONSE, event)
  if (typeof document === 'string') return null
  const counts = new Counts()
  const usage = objectAt(objectAt(objectAt(document.value)['response'])['usage'])
  const read = counts.read(usage['input_tokens'])
  const written = counts.read(usage['output_tokens'])
  return read === null || written === null || read === 0 ? null : read + written
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
