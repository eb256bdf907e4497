import { type ReplyTimes, Silence } from '../calls/silence.ts'
import type { BodyCoding } from '../http/raw-headers.ts'
import { CopyDecoder } from '../metering/decode-copy.ts'
import {
  type Meter,
  type Metered,
  NOTHING_SHOWN,
  type Shown,
  SilentMeter,
  type Stage,
} from '../metering/meter.ts'

/** A decoded copy is read up to this size. The rest of the usage is estimated. */
const DECODED_REPLY_BYTES_MAX = 1024 * 1024 ** 2

interface ReplyClock {
  nowMs(): number
}

/** Reads a reply as it passes. It gets every byte, because upstream waits if the decoded copy lags behind. */
export class ReplyObserver {
  readonly #clock: ReplyClock
  /** Called when the decoded copy has caught up. */
  readonly #onCaughtUp: () => void
  readonly #silence = new Silence()
  #meter: Meter | null = null
  #decoder: CopyDecoder | 'unreadable' | null = null
  #lag: Promise<void> | null = null
  #readMs = 0
  #onObject: ((named: Shown) => void) | null = null

  constructor(clock: ReplyClock, onCaughtUp: () => void) {
    this.#clock = clock
    this.#onCaughtUp = onCaughtUp
  }

  get isLagging(): boolean {
    return this.#lag !== null
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  get stage(): Stage {
    return this.#meter?.stage ?? 'content'
  }

  get times(): ReplyTimes {
    const times = this.#silence.timesAt(this.#clock.nowMs())
    // After the content, upstream is done: silence while the gateway waits for the usage is no work.
    return this.stage === 'content' ? times : { ...times, silentMs: this.#silence.silentMsAt(this.#readMs) }
  }

  /** `onObject` is called once, when a stream names the object that it creates. */
  start(
    meter: Meter,
    coding: BodyCoding,
    backlogBytesMax: number,
    onObject: ((named: Shown) => void) | null,
  ): void {
    this.#meter = meter
    this.#onObject = onObject
    if (coding === 'unknown') this.#decoder = 'unreadable'
    if (coding === 'unknown' || coding === 'identity') return
    const meterBytes = (bytes: Buffer) => {
      meter.write(bytes)
      this.#recordProgress(meter)
    }
    this.#decoder = new CopyDecoder(coding, DECODED_REPLY_BYTES_MAX, meterBytes, { backlogBytesMax })
  }

  /** Returns the bytes for the client; null if there are none yet. */
  read(chunk: Buffer): Buffer | null {
    const meter = this.#meter
    if (meter === null || this.#decoder === 'unreadable') return chunk
    if (this.#decoder !== null) {
      const lag = this.#decoder.write(chunk)
      if (lag !== null && lag !== this.#lag) this.#waitForCopy(lag)
      return chunk
    }
    const forClient = meter.write(chunk)
    this.#recordProgress(meter)
    return forClient
  }

  /** Time in which upstream is not read is not silence of upstream. */
  pause(): void {
    this.#silence.pause(this.#clock.nowMs())
  }

  resume(): void {
    this.#silence.resume(this.#clock.nowMs())
  }

  /** `isExpected`: whether a reply should have been read, although none came. */
  async end(whole: boolean, isExpected: boolean): Promise<Metered | null> {
    const meter = this.#meter
    if (meter === null) return isExpected ? new SilentMeter().end(false) : null
    if (this.#decoder === null) return meter.end(whole)
    if (this.#decoder === 'unreadable') return { ...meter.end(false), fault: 'unreadable' }
    const state = await this.#decoder.end()
    return meter.end(whole && state === 'whole')
  }

  /** Bytes for the client that the meter has kept to itself. Nothing is read after this. */
  takeRemainder(): Buffer | null {
    const remainder = this.#meter?.remainder?.() ?? null
    this.#meter = null
    return remainder
  }

  #recordProgress(meter: Meter): void {
    this.#readMs = this.#clock.nowMs()
    if (meter.hasBegun) this.#silence.recordOutput(meter.visibleBytes, this.#readMs)
    const onObject = this.#onObject
    if (onObject === null) return
    const { shown } = meter
    if (shown.objectId === null) return
    this.#onObject = null
    onObject(shown)
  }

  /** Waits until the copy has caught up. This always ends, even if the client or upstream has gone. */
  #waitForCopy(lag: Promise<void>): void {
    this.#lag = lag
    lag.then(() => {
      if (this.#lag !== lag) return
      this.#lag = null
      this.#onCaughtUp()
    })
  }
}
