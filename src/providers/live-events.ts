import { hash } from 'node:crypto'
import { type Borrowed, viewOf } from '../kernel/memory.ts'
import type { Usage } from '../kernel/usage.ts'
import { handedOver, objectOf, type Place, SCALAR, scalars, TEXT } from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import { readJson } from '../metering/reply-meter.ts'
import type { Delegate } from './realtime-events.ts'
import { createMeter } from './surfaces.ts'
import { Counts, nameAt, objectAt, type WireObject } from './usage/reading.ts'

const NESTED = objectOf({ event: handedOver(TEXT), delegation_id: SCALAR })
const DECISION = objectOf({ event: objectOf({ decision: handedOver(TEXT) }) })

const DELEGATED_BY: Readonly<Record<string, Delegate['kind']>> = {
  'response.create': 'responses',
  'decision.create': 'decisions',
}

/** The kind of work that a message of the client requests from a delegate; null for other messages. */
export function delegatedBy(type: string | null): Delegate['kind'] | null {
  return type !== null && Object.hasOwn(DELEGATED_BY, type) ? (DELEGATED_BY[type] ?? null) : null
}

/** The event of a delegated response inside of an event of the session. */
export interface NestedEvent {
  readonly event: Buffer
  /** The delegation that the response belongs to. */
  readonly delegationId: string | null
}

export function nestedEvent(text: Buffer): NestedEvent | null {
  const found = jsonAt(NESTED, text)
  return found && { event: found.json, delegationId: nameAt(found.around['delegation_id']) }
}

const RESPONSE = objectOf({ response: objectOf({ usage: objectOf(scalars('input_tokens output_tokens')) }) })

/** The tokens that a delegated response has read and written by its last event; null where that does not state them. */
export function usedTokens(event: Buffer): number | null {
  const document = readJson(RESPONSE, event)
  if (typeof document === 'string') return null
  const counts = new Counts()
  const usage = objectAt(objectAt(objectAt(document.value)['response'])['usage'])
  const read = counts.read(usage['input_tokens'])
  const written = counts.read(usage['output_tokens'])
  return read === null || written === null || read === 0 ? null : read + written
}

/** A decision of a session: its usage, and a digest in place of the id that it does not have. Null where it states no usage. */
export function decisionMade(text: Buffer): { readonly used: Usage; readonly digest: string } | null {
  const decision = jsonAt(DECISION, text)?.json ?? null
  if (decision === null) return null
  const meter = createMeter('decisions', { status: 200, contentType: 'application/json' })
  meter.write(decision)
  const { usage: used, inputKnown, outputKnown } = meter.end(true)
  return inputKnown && outputKnown ? { used, digest: hash('sha256', decision) } : null
}

function jsonAt(place: Place, text: Buffer): { readonly json: Buffer; readonly around: WireObject } | null {
  const pieces: Buffer[] = []
  const onBytes = (bytes: Borrowed) => {
    pieces.push(Buffer.from(viewOf(bytes)))
  }
  const walker = new JsonWalker(place, { tolerant: true, onBytes })
  walker.write(text)
  const scan = walker.end()
  if (scan.kind === 'unreadable' || pieces.length === 0) return null
  return { json: Buffer.concat(pieces), around: objectAt(scan.picked.value) }
}
