import type { Clock } from '../../kernel/clock.ts'
import { type Meter, type Metered, SilentMeter } from '../../metering/meter.ts'
import { type ReplyTimes, Silence } from '../estimates.ts'

const [DATA, EVENT_END] = [Buffer.from('data: '), Buffer.from('\n\n')]
const [LINE_FEED, CARRIAGE_RETURN, BLANK] = [0x0a, 0x0d, 0x20]

/** The events of a turn, which the meter reads as the server-sent events that they are over HTTP. */
export class TurnEvents {
  readonly #clock: Clock
  readonly #onRead: (framed: Buffer) => void
  readonly #silence = new Silence()
  #meter: Meter = new SilentMeter()

  constructor(clock: Clock, onRead: (framed: Buffer) => void) {
    this.#clock = clock
    this.#onRead = onRead
  }

  get meter(): Pick<Meter, 'stage' | 'shown' | 'visibleBytes'> {
    return this.#meter
  }

  readWith(meter: Meter): void {
    this.#meter = meter
  }

  /** Sees an event, as JSON. Silence goes by the time at which each event arrives. */
  observe(event: Buffer): void {
    const nowMs = this.#clock.monotonicMs()
    const framed = Buffer.concat([DATA, inOneLine(event), EVENT_END])
    this.#onRead(framed)
    this.#meter.write(framed)
    this.#silence.see(this.#meter.visibleBytes, nowMs)
  }

  paused(isPaused: boolean): void {
    const nowMs = this.#clock.monotonicMs()
    if (isPaused) this.#silence.pause(nowMs)
    else this.#silence.resume(nowMs)
  }

  end(whole: boolean): { readonly metered: Metered; readonly times: ReplyTimes } {
    return { times: this.#silence.timesAt(this.#clock.monotonicMs()), metered: this.#meter.end(whole) }
  }
}

/** JSON may contain line breaks between its tokens, which would end a line of the stream. */
function inOneLine(event: Buffer): Buffer {
  if (!event.includes(LINE_FEED) && !event.includes(CARRIAGE_RETURN)) return event
  return Buffer.from(event).map((byte) =>
    byte === LINE_FEED || byte === CARRIAGE_RETURN ? BLANK : byte,
  ) as Buffer
}
