import { NO_USAGE } from '../kernel/usage.ts'
import { type Meter, type Metered, NOTHING_SHOWN, type Shown, type Stage } from './meter.ts'
import { OutputText } from './output-text.ts'

/** The meter of a reply that says nothing about usage: audio, text, an error. */
export class SilentMeter implements Meter {
  readonly stage: Stage = 'content'
  readonly shown: Shown = NOTHING_SHOWN
  readonly visibleBytes = 0

  write(_chunk: Buffer): void {}

  end(whole: boolean): Metered {
    return {
      usage: NO_USAGE,
      inputKnown: false,
      outputKnown: false,
      outputTokensSeen: 0,
      error: null,
      objectId: null,
      imagesBegun: 0,
      stage: whole ? 'over' : 'content',
      shown: NOTHING_SHOWN,
      output: new OutputText().delivered(),
      faults: [],
    }
  }
}

/**
 * Keeps a fault of ours from breaking a reply: a meter that fails once is not asked again, and says so at the end.
 * Nothing that upstream can send is known to lead here.
 */
export class GuardedMeter implements Meter {
  #meter: Meter
  #failed = false

  constructor(meter: Meter) {
    this.#meter = meter
  }

  get stage(): Stage {
    return this.#meter.stage
  }

  get shown(): Shown {
    return this.#meter.shown
  }

  get visibleBytes(): number {
    return this.#meter.visibleBytes
  }

  write(chunk: Buffer): void {
    try {
      this.#meter.write(chunk)
    } catch {
      this.#fail()
    }
  }

  end(whole: boolean): Metered {
    try {
      const metered = this.#meter.end(whole)
      return this.#failed ? { ...metered, faults: ['failed'] } : metered
    } catch {
      this.#fail()
      return { ...this.#meter.end(whole), faults: ['failed'] }
    }
  }

  #fail(): void {
    this.#failed = true
    this.#meter = new SilentMeter()
  }
}
