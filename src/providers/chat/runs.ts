import { objectOf, scalars } from '../../metering/json-place.ts'
import type { Reading, ReplyDocument, ReplyLayout, ReplyReader, Shown, Stage } from '../../metering/meter.ts'
import { isObject, nameAt, objectAt, type WireObject } from '../usage/reading.ts'
import { ERROR, errorNameOf, ReplyFacts, type ReportedTokens, TOKEN_MEMBERS } from './tokens.ts'

const RUN = objectOf({
  ...scalars('id object status model thread_id code type'),
  usage: objectOf(TOKEN_MEMBERS),
  last_error: ERROR,
  error: ERROR,
})
const LAYOUT: ReplyLayout = { body: RUN, event: RUN, noise: new Set(), dullEvents: [] }

/** The states in which a run does nothing any more, and states its usage. */
const OVER: ReadonlySet<string | null> = new Set([
  'completed',
  'incomplete',
  'cancelled',
  'failed',
  'expired',
])

const NOTHING: ReportedTokens = {
  input: { total: 0, quantities: {} },
  output: { total: 0, quantities: {} },
}

/**
 * Reads a run of a thread, as a document or as events. Events are told apart by the `object` that they are about: steps
 * state usage as well, and the run states the sum of them.
 */
export class RunReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly #facts = new ReplyFacts()
  stage: Stage = 'content'
  #threadId: string | null = null
  #status: string | null = null

  get shown(): Shown {
    const { tokens, id: objectId } = this.#facts
    const inputKnown = tokens.input !== null
    return { inputKnown, toolsRan: false, reasons: false, objectId, threadId: this.#threadId }
  }

  readDone(): void {
    this.stage = 'over'
  }

  readEvent(document: ReplyDocument, name: string): null {
    const event = objectAt(document.value)
    if (name === 'error') this.#facts.error = errorNameOf(isObject(event['error']) ? event['error'] : event)
    if (event['object'] === 'thread.run') this.#readRun(event, document)
    return null
  }

  readBody(document: ReplyDocument): void {
    this.#readRun(objectAt(document.value), document)
    this.stage = 'over'
  }

  readText(): void {}

  reading(): Reading {
    const reading = this.#facts.reading(true, this.#status)
    return this.#threadId === null ? reading : { ...reading, threadId: this.#threadId }
  }

  #readRun(run: WireObject, document: ReplyDocument): void {
    const facts = this.#facts
    facts.readHead(run)
    facts.readError({ error: run['last_error'] })
    this.#threadId = nameAt(run['thread_id']) ?? this.#threadId
    this.#status = nameAt(run['status'])
    if (!OVER.has(this.#status)) return
    this.stage = 'over'
    const isStated = facts.readUsage(run, document)
    // A run that ended before it began states no usage. A run that is complete has used something.
    if (!isStated && this.#status !== 'completed' && facts.tokens.input === null) facts.tokens = NOTHING
  }
}
