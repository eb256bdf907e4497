import type { Clock } from '../../kernel/clock.ts'
import { type Borrowed, withBorrowed } from '../../kernel/memory.ts'
import { type Meter, type Metered, SilentMeter } from '../../metering/meter.ts'
import { Silence } from '../estimate-usage.ts'

const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]
const [LINE_FEED, CARRIAGE_RETURN, BLANK] = [0x0a, 0x0d, 0x20]

/** The events of a turn, which the meter reads as the server-sent events that they are over HTTP. */
export class TurnEvents {
  readonly #clock: Clock
  readonly #onRead: (framed: Borrowed) => void
  /** Null until the first event. */
  #silence: Silence | null = null
  #meter: Meter = new SilentMeter()

  /** `onRead` sees the bytes that the meter reads. */
  constructor(clock: Clock, onRead: (framed: Borrowed) => void) {
    this.#clock = clock
    this.#onRead = onRead
  }

  get meter(): Pick<Meter, 'stage' | 'shown' | 'visibleBytes'> {
    return this.#meter
  }

  /** How long upstream was not read. */
  get pausedMs(): number {
    return this.#silence?.pausedMs ?? 0
  }

  readWith(meter: Meter): void {
    this.#meter = meter
  }

  /** Sees an event, as JSON. Silence goes by the time at which each event arrives. */
  observe(event: Buffer): void {
    const nowMs = this.#clock.monotonicMs()
    this.#silence ??= new Silence(nowMs)
    withBorrowed(Buffer.concat([DATA, inOneLine(event), EVENT_END]), (framed) => {
      this.#onRead(framed)
      this.#meter.write(framed)
    })
    this.#silence.see(this.#meter.visibleBytes, nowMs)
  }

  paused(isPaused: boolean): void {
    const nowMs = this.#clock.monotonicMs()
    if (isPaused) this.#silence?.pause(nowMs)
    else this.#silence?.resume(nowMs)
  }

  /** What the events have stated, and how long they showed no output of the model. */
  end(whole: boolean): { readonly metered: Metered; readonly silentMs: number } {
    const silentMs = this.#silence?.until(this.#clock.monotonicMs()) ?? 0
    return { silentMs, metered: this.#meter.end(whole) }
  }
}

/** JSON may contain line breaks between its tokens, which would end a line of the stream. */
function inOneLine(event: Buffer): Buffer {
  if (!event.includes(LINE_FEED) && !event.includes(CARRIAGE_RETURN)) return event
  return Buffer.from(event).map((byte) =>
    byte === LINE_FEED || byte === CARRIAGE_RETURN ? BLANK : byte,
  ) as Buffer
}
