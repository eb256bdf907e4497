import { NO_USAGE } from '../../kernel/usage.ts'
import { objectOf, scalars } from '../../metering/json-place.ts'
import type { Reading, ReplyDocument, ReplyLayout, ReplyReader, Shown, Stage } from '../../metering/meter.ts'
import { Counts, isObject, nameAt, objectAt, readingOf, type WireObject } from '../usage/reading.ts'
import {
  ERROR,
  errorNameOf,
  laterTokens,
  NO_TOKENS,
  partOf,
  type ReportedTokens,
  readTokens,
  TOKEN_MEMBERS,
} from './tokens.ts'

const RUN = objectOf({
  ...scalars('id object status model thread_id code type'),
  usage: objectOf(TOKEN_MEMBERS),
  last_error: ERROR,
  error: ERROR,
})
const LAYOUT: ReplyLayout = { body: RUN, event: RUN, noise: new Set(), dullEvents: [] }

/** Nothing is done any more in these, and what was used is stated. */
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
 * A run of a thread, by itself or as the events of one. Those are told apart by the `object` that they are about: steps
 * state usage as well, and the run states the sum of them.
 */
export class RunReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly #counts = new Counts()
  stage: Stage = 'content'
  #id: string | null = null
  #threadId: string | null = null
  #model: string | null = null
  #status: string | null = null
  #error: string | null = null
  #tokens: ReportedTokens = NO_TOKENS

  get shown(): Shown {
    return { inputKnown: this.#tokens.input !== null, toolsRan: false, reasons: false }
  }

  readDone(): void {
    this.stage = 'over'
  }

  readEvent(document: ReplyDocument, name: string): null {
    const event = objectAt(document.value)
    if (name === 'error') this.#error = errorNameOf(isObject(event['error']) ? event['error'] : event)
    if (event['object'] === 'thread.run') this.#readRun(event, document)
    return null
  }

  readBody(document: ReplyDocument): void {
    this.#readRun(objectAt(document.value), document)
    this.stage = 'over'
  }

  readText(): void {}

  reading(): Reading {
    const { input, output } = this.#tokens
    const reading = readingOf({
      parts: [partOf(null, this.#tokens)],
      inputKnown: input !== null,
      outputKnown: output !== null,
      outputTokensSeen: output?.total ?? 0,
      usage: { ...NO_USAGE, modelServed: this.#model, stopReason: this.#status },
      suspect: this.#counts.suspect,
      error: this.#error,
      objectId: this.#id,
    })
    return this.#threadId === null ? reading : { ...reading, threadId: this.#threadId }
  }

  #readRun(run: WireObject, document: ReplyDocument): void {
    const { usage } = run
    this.#id = nameAt(run['id']) ?? this.#id
    this.#threadId = nameAt(run['thread_id']) ?? this.#threadId
    this.#model = nameAt(run['model']) ?? this.#model
    this.#status = nameAt(run['status'])
    if (isObject(run['last_error'])) this.#error = errorNameOf(run['last_error'])
    if (!OVER.has(this.#status)) return
    this.stage = 'over'
    if (usage === null || usage === undefined) {
      // One that ended before it began states none. One that is complete has used something.
      if (this.#status !== 'completed') this.#tokens = laterTokens(this.#tokens, NOTHING, this.#counts)
      return
    }
    if (!isObject(usage) || document.repeatsNames) this.#counts.doubt()
    this.#tokens = laterTokens(this.#tokens, readTokens(objectAt(usage), this.#counts), this.#counts)
  }
}
