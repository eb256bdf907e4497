import type { Clock } from '../../kernel/clock.ts'
import { type Borrowed, withBorrowed } from '../../kernel/memory.ts'
import { type Meter, type Metered, SilentMeter } from '../../metering/meter.ts'
import { Silence } from '../estimate-usage.ts'

const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]
const FRAMING_BYTES = DATA.length + EVENT_END.length

const [LINE_FEED, CARRIAGE_RETURN, BLANK] = [0x0a, 0x0d, 0x20]

/**
 * Events are read in batches: most have a few hundred bytes, and the code that reads them has left the processor's caches when the
 * next event of a socket comes. One by one they took three times as long.
 */
const BATCH_BYTES = 32 * 1024

/** A batch that has waited for so long is read: the pause of the model has to be seen when it was. */
const BATCH_MS = 500

/** The events of a turn, which the meter reads as the stream of server-sent events that they are over HTTP. */
export class TurnEvents {
  readonly #clock: Clock
  readonly #onRead: (framed: Borrowed) => void
  readonly #silence: Silence
  #meter: Meter = new SilentMeter()
  /** Events that are not read yet, and when the last of them came. */
  #batch: Buffer | null = null
  #batchBytes = 0
  #cameMs = 0

  /** `onRead` sees the bytes that the meter reads. */
  constructor(clock: Clock, onRead: (framed: Borrowed) => void) {
    this.#clock = clock
    this.#onRead = onRead
    this.#silence = new Silence(clock.monotonicMs())
  }

  /** The meter, when it has read all events that have come. */
  get meter(): Pick<Meter, 'stage' | 'shown' | 'visibleBytes'> {
    this.#flush()
    return this.#meter
  }

  /** How long upstream was not read. */
  get pausedMs(): number {
    return this.#silence.pausedMs
  }

  readWith(meter: Meter): void {
    this.#meter = meter
  }

  /** Sees an event, as JSON. */
  observe(event: Buffer): void {
    const nowMs = this.#clock.monotonicMs()
    const bytes = event.length + FRAMING_BYTES
    if (this.#batchBytes > 0 && (nowMs - this.#cameMs > BATCH_MS || this.#batchBytes + bytes > BATCH_BYTES))
      this.#flush()
    this.#cameMs = nowMs
    if (bytes > BATCH_BYTES) for (const piece of [DATA, inOneLine(event), EVENT_END]) this.#read(piece)
    else {
      // Copied: to keep the events themselves is thousands of objects, which the garbage collector's threads moved about.
      this.#batch ??= Buffer.allocUnsafeSlow(BATCH_BYTES)
      const at = this.#batchBytes
      this.#batch.set(DATA, at)
      this.#batch.set(inOneLine(event), at + DATA.length)
      this.#batch.set(EVENT_END, at + DATA.length + event.length)
      this.#batchBytes += bytes
    }
  }

  paused(isPaused: boolean): void {
    this.#flush()
    const nowMs = this.#clock.monotonicMs()
    if (isPaused) this.#silence.pause(nowMs)
    else this.#silence.resume(nowMs)
  }

  /** What the events have stated, and how long they showed no output of the model. */
  end(whole: boolean): { readonly metered: Metered; readonly silentMs: number } {
    this.#flush()
    this.#batch = null
    return { silentMs: this.#silence.until(this.#clock.monotonicMs()), metered: this.#meter.end(whole) }
  }

  #flush(): void {
    if (this.#batch === null || this.#batchBytes === 0) return
    const batch = this.#batch.subarray(0, this.#batchBytes)
    this.#batchBytes = 0
    this.#read(batch)
  }

  #read(framed: Buffer): void {
    withBorrowed(framed, (bytes) => {
      this.#onRead(bytes)
      this.#meter.write(bytes)
    })
    this.#silence.see(this.#meter.visibleBytes, this.#cameMs)
  }
}

/** JSON may contain line breaks between its tokens, which would end a line of the stream. */
function inOneLine(event: Buffer): Buffer {
  if (!event.includes(LINE_FEED) && !event.includes(CARRIAGE_RETURN)) return event
  const line = Buffer.from(event)
  for (let i = 0; i < line.length; i++) {
    if (line[i] === LINE_FEED || line[i] === CARRIAGE_RETURN) line[i] = BLANK
  }
  return line
}
