import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import { type SessionEvent, soundMs } from '../../providers/realtime-events.ts'
import { cutResponseUsage, realtimeUsage, statesTotals } from '../../providers/socket-usage.ts'
import { isPlausible } from '../bill.ts'
import type { BillPlan } from '../pricer.ts'

/** What came for a response to read. */
export interface Came {
  readonly heardMs: number
  readonly readBytes: number
}

/** What is known of a response of a Realtime session since it has begun, and what came since the one before it. */
export interface BegunResponse extends Came {
  /** By which it may have begun. Those that are named later have no part in it. */
  readonly models: readonly (string | null)[]
  soundBytes: number
  writtenBytes: number
}

/** What the responses of a session have used: as upstream says, or by what passed. Of two readings the dearer counts. */
export class ResponseUsages {
  spokenBytesPerMs = PCM_BYTES_PER_MS
  #before: Usage | null = null

  ended(response: BegunResponse, { usage, status }: SessionEvent, bill: BillPlan): Usage {
    const { models, soundBytes, writtenBytes } = response
    const stated = dearest(
      models.map((model) => realtimeUsage(usage, model)),
      bill,
    )
    const isStated = usage !== null && isPlausible(stated, bill.rate(stated))
    const isFailure = usage === null && status === 'failed' && soundBytes + writtenBytes === 0
    if (isFailure || (isStated && statesTotals(usage))) {
      this.#keep(stated)
      return { ...stated, stopReason: status }
    }
    const passed = this.cut(response, bill)
    const used = isStated ? dearest([stated, passed], bill) : passed
    return { ...used, suspect: true, stopReason: status }
  }

  /** Upstream does not say what it has used. */
  cut({ models, heardMs, readBytes, soundBytes, writtenBytes }: BegunResponse, bill: BillPlan): Usage {
    const spokenMs = soundMs(soundBytes, this.spokenBytesPerMs)
    const passed = { before: this.#before, heardMs, readBytes, spokenMs, writtenChars: writtenBytes }
    return dearest(
      models.map((model) => cutResponseUsage(passed, model, bill.tokensHeld(model).contextWindow)),
      bill,
    )
  }

  /** The most that was read: a response beside the conversation does not say how long that is. */
  #keep(stated: Usage): void {
    if (promptTokens(stated) >= promptTokens(this.#before)) this.#before = stated
  }
}

export function promptTokens(usage: Usage | null): number {
  return usage?.parts[0]?.promptTokens ?? 0
}

function dearest(readings: readonly Usage[], bill: BillPlan): Usage {
  const costOf = (usage: Usage) => bill.rate(usage).costNanos
  return readings.reduce((dearer, usage) => (costOf(usage) > costOf(dearer) ? usage : dearer))
}
