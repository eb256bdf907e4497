import { type Meter, type Metered, NOTHING_SHOWN, type Shown, type Stage } from './meter.ts'

export type SniffedForm = 'json' | 'events'

/** What may stand before a document or a stream: blanks, the ends of lines, and a byte order mark. */
const BEFORE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])

/** How lines of events begin; one without a name is a comment. */
const EVENT_LINE = /^(?:data|event|id|retry)?:/
const EVENT_LINE_LENGTH = 'event:'.length

/** The meter of a reply that does not say what it is: its first bytes do, and most say that it has no usage. */
export class SniffingMeter implements Meter {
  readonly #create: (form: SniffedForm | 'other') => Meter
  /** Null until the first bytes are there. */
  #meter: Meter | null = null
  #start = ''

  constructor(create: (form: SniffedForm | 'other') => Meter) {
    this.#create = create
  }

  get stage(): Stage {
    return this.#meter?.stage ?? 'content'
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  get visibleBytes(): number {
    return this.#meter?.visibleBytes ?? 0
  }

  write(chunk: Buffer): void {
    if (this.#meter !== null) {
      this.#meter.write(chunk)
      return
    }
    let from = 0
    if (this.#start === '') while (from < chunk.length && BEFORE.has(chunk[from] ?? 0)) from++
    const read = this.#start.length
    this.#start += chunk.toString('latin1', from, from + EVENT_LINE_LENGTH - read)
    if (this.#start === '' || !this.#isEnough()) return
    this.#meter = this.#choose()
    if (read > 0) this.#meter.write(Buffer.from(this.#start.slice(0, read), 'latin1'))
    this.#meter.write(chunk.subarray(from))
  }

  end(whole: boolean): Metered {
    if (this.#meter === null) {
      this.#meter = this.#choose()
      this.#meter.write(Buffer.from(this.#start, 'latin1'))
    }
    return this.#meter.end(whole)
  }

  #isEnough(): boolean {
    return this.#start.length === EVENT_LINE_LENGTH || this.#start[0] === '{' || this.#start.includes(':')
  }

  #choose(): Meter {
    if (this.#start[0] === '{') return this.#create('json')
    return this.#create(EVENT_LINE.test(this.#start) ? 'events' : 'other')
  }
}
