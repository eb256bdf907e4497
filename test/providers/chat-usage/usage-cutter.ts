import { cutUsage } from '../../../src/providers/chat-usage.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'

/** The meter of a chat stream with injected usage, limited to removing it. */
export class UsageCutter {
  readonly #meter = createMeter('chat', 'text/event-stream', cutUsage)

  write(chunk: Buffer): Buffer | null {
    const kept = this.#meter.write(chunk)
    return kept === null ? null : kept
  }

  end(): Buffer | null {
    this.#meter.end(false)
    const rest = this.#meter.remainder?.() ?? null
    return rest === null ? null : rest
  }
}
