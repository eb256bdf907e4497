import { JsonCondenser } from './json-condenser.ts'
import { readDocument } from './json-document.ts'
import type { Meter, Metered, MeterFault, ReplyReader, Stage } from './meter.ts'
import type { OutputText } from './output-text.ts'

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
    const faults: MeterFault[] = []
    const document = readDocument(this.#condenser.take())
    if (typeof document !== 'string') {
      if (document.overflow) faults.push('too_large')
      this.#reader.readBody(document)
    } else if (whole) faults.push(document)
    return { ...this.#reader.reading(), stage: this.stage, output: this.#output.delivered(), faults }
  }
}
