import { JsonCondenser } from './json-condenser.ts'
import {
  type Condensed,
  type CondenseRules,
  type JsonDocument,
  readDocument,
  readSmall,
  type SmallDocument,
} from './json-document.ts'
import type { Meter, Metered, MeterFault, ReplyReader, Shown, Stage } from './meter.ts'
import { type DeliveredOutput, LateOutput, type OutputText } from './output-text.ts'

/** The meter of a reply that is one JSON document. Nothing is known of it before it is whole. */
export class BodyMeter implements Meter {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #rules: CondenseRules
  /** Null before the first chunk, and as long as the small document is all there is. */
  #condenser: JsonCondenser | null = null
  #small: SmallDocument | null = null

  constructor(reader: ReplyReader, output: OutputText) {
    this.#reader = reader
    this.#output = output
    this.#rules = { keep: reader.layout.members, drop: reader.layout.ignored }
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  get shown(): Shown {
    return this.#reader.shown
  }

  /** A document is seen when it is whole. */
  readonly visibleBytes = 0

  write(chunk: Buffer): void {
    if (this.#condenser === null && this.#small === null) {
      this.#small = readSmall(chunk, this.#rules)
      if (this.#small !== null) return
    }
    this.#condense().write(chunk, 0, chunk.length)
  }

  end(whole: boolean): Metered {
    if (this.#small !== null) return this.#read(this.#small.document, this.#small.document)
    const { brief, whole: all } = this.#condense().takeTwo()
    const document = readDocument(brief)
    if (typeof document === 'string') return this.#metered(whole ? [document] : [], this.#output.delivered())
    return this.#read(document, all)
  }

  /** Where there is more than the small document, all of it has to be condensed, from its beginning. */
  #condense(): JsonCondenser {
    if (this.#condenser !== null) return this.#condenser
    const condenser = new JsonCondenser(this.#rules)
    if (this.#small !== null) {
      const bytes = Buffer.from(this.#small.text)
      condenser.write(bytes, 0, bytes.length)
      this.#small = null
    }
    this.#condenser = condenser
    return condenser
  }

  /** What the model wrote is looked for when somebody asks, in the document itself or in the copy that has all of it. */
  #read(document: JsonDocument, source: JsonDocument | Condensed): Metered {
    this.#reader.readBody(document)
    const output = new LateOutput(() => {
      const withText = 'kind' in source ? readDocument(source) : source
      if (typeof withText !== 'string') this.#reader.readText(withText)
      return this.#output.delivered()
    })
    return this.#metered(document.overflow ? ['too_large'] : [], output)
  }

  #metered(faults: readonly MeterFault[], output: DeliveredOutput): Metered {
    return { ...this.#reader.reading(), stage: this.stage, shown: this.shown, output, faults }
  }
}
