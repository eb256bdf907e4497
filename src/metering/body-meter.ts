import { JsonCondenser } from './json-condenser.ts'
import { readDocument } from './json-document.ts'
import type { Meter, Metered, MeterFault, ReplyReader, Stage } from './meter.ts'
import { type DeliveredOutput, LateOutput, type OutputText } from './output-text.ts'

/** The meter of a reply that is one JSON document. Nothing is known of it before it is whole. */
export class BodyMeter implements Meter {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #condenser: JsonCondenser

  constructor(reader: ReplyReader, output: OutputText) {
    const { members, ignored } = reader.layout
    this.#reader = reader
    this.#output = output
    this.#condenser = new JsonCondenser({ keep: members, drop: ignored })
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  write(chunk: Buffer): void {
    this.#condenser.write(chunk, 0, chunk.length)
  }

  end(whole: boolean): Metered {
    const { brief, whole: all } = this.#condenser.takeTwo()
    const document = readDocument(brief)
    if (typeof document === 'string') return this.#metered(whole ? [document] : [], this.#output.delivered())
    this.#reader.readBody(document)
    const output = new LateOutput(() => {
      const withText = readDocument(all)
      if (typeof withText !== 'string') this.#reader.readText(withText)
      return this.#output.delivered()
    })
    return this.#metered(document.overflow ? ['too_large'] : [], output)
  }

  #metered(faults: readonly MeterFault[], output: DeliveredOutput): Metered {
    return { ...this.#reader.reading(), stage: this.stage, output, faults }
  }
}
