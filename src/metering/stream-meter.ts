import { JsonCondenser } from './json-condenser.ts'
import { readDocument } from './json-document.ts'
import type { Meter, Metered, MeterFault, ReplyReader, Stage } from './meter.ts'
import type { OutputText } from './output-text.ts'
import { SseScanner, type SseSink } from './sse-scanner.ts'
import { TemplateSet } from './template-set.ts'

const DONE = '[DONE]'

/** The meter of a reply of server-sent events. */
export class StreamMeter implements Meter, SseSink {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #condenser: JsonCondenser
  readonly #templates: TemplateSet
  readonly #scanner = new SseScanner(this)
  readonly #faults = new Set<MeterFault>()
  #isFirstData = true
  #isDull = false
  /** The event at hand may be cut off, so that it need not be JSON. */
  #isLast = false

  constructor(reader: ReplyReader, output: OutputText) {
    const { members, ignored, noise } = reader.layout
    this.#reader = reader
    this.#output = output
    this.#condenser = new JsonCondenser({ keep: members, drop: ignored })
    this.#templates = new TemplateSet(noise)
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  write(chunk: Buffer): void {
    this.#scanner.write(chunk)
  }

  end(whole: boolean): Metered {
    this.#isLast = !whole
    this.#scanner.end()
    return {
      ...this.#reader.reading(),
      stage: this.stage,
      output: this.#output.delivered(),
      faults: [...this.#faults],
    }
  }

  recognise(chunk: Buffer, words: DataView, from: number): number {
    // What an event means may depend on what came before; while content comes, one text is like the other.
    if (this.#reader.stage !== 'content') return from
    const behind = this.#templates.take(chunk, words, from)
    return behind < 0 ? from : behind
  }

  data(chunk: Buffer, from: number, to: number): void {
    if (this.#isFirstData) {
      this.#isFirstData = false
      this.#isDull = this.#reader.layout.dullEvents.some((start) => startsWith(chunk, from, to, start))
    }
    if (!this.#isDull) this.#condenser.write(chunk, from, to)
  }

  event(name: string, raw: Buffer | null): void {
    this.#isFirstData = true
    if (this.#isDull) {
      this.#isDull = false
      return
    }
    const condensed = this.#condenser.take()
    if (condensed.kind === 'json' && (condensed.text === '' || condensed.text === DONE)) {
      if (condensed.text === DONE) this.#reader.readDone()
      return
    }
    const document = readDocument(condensed)
    if (typeof document === 'string') {
      if (!this.#isLast) this.#faults.add(document)
      return
    }
    if (document.overflow) this.#faults.add('too_large')
    const place = this.#reader.readEvent(document, name)
    if (place !== null && raw !== null) this.#templates.learn(raw, place)
  }
}

function startsWith(chunk: Buffer, from: number, to: number, start: Buffer): boolean {
  if (to - from < start.length) return false
  for (let i = 0; i < start.length; i++) {
    if (chunk[from + i] !== start[i]) return false
  }
  return true
}
