import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import { audioMs, type SessionEvent } from '../../providers/realtime-events.ts'
import { cutResponseUsage, realtimeUsage, statesTotals } from '../../providers/socket-usage.ts'
import { isPlausible } from '../bill.ts'
import type { BillPlan } from '../pricer.ts'

/** Input of the client that a response reads. */
export interface ResponseInput {
  readonly inputAudioMs: number
  readonly inputTextBytes: number
}

/** A response of a Realtime session that has begun, with the input since the response before it. */
export interface BegunResponse extends ResponseInput {
  /** Models that may have made it. A model that the session is set to later is not among them. */
  readonly models: readonly (string | null)[]
  outputAudioBytes: number
  outputTextBytes: number
}

/** The usage of a session's responses: as upstream states it, or estimated from what passed. Of two readings the dearer counts. */
export class ResponseUsages {
  outputBytesPerMs = PCM_BYTES_PER_MS
  /** Of the response that has read most. */
  #before: Usage | null = null

  usageOfEnded(response: BegunResponse, { usage, status }: SessionEvent, bill: BillPlan): Usage {
    const { models, outputAudioBytes, outputTextBytes } = response
    const stated = dearest(
      models.map((model) => realtimeUsage(usage, model)),
      bill,
    )
    const isStated = usage !== null && isPlausible(stated, bill.rate(stated))
    const isFailure = usage === null && status === 'failed' && outputAudioBytes + outputTextBytes === 0
    if (isFailure || (isStated && statesTotals(usage))) {
      this.#keep(stated)
      return { ...stated, stopReason: status }
    }
    const estimated = this.usageOfCut(response, bill)
    const used = isStated ? dearest([stated, estimated], bill) : estimated
    return { ...used, suspect: true, stopReason: status }
  }

  /** An estimate, for a response of which upstream states no usage. */
  usageOfCut(response: BegunResponse, bill: BillPlan): Usage {
    const { models, inputAudioMs, inputTextBytes, outputAudioBytes, outputTextBytes } = response
    const outputAudioMs = audioMs(outputAudioBytes, this.outputBytesPerMs)
    const cut = { before: this.#before, inputAudioMs, inputTextBytes, outputAudioMs, outputTextBytes }
    return dearest(
      models.map((model) => cutResponseUsage(cut, model, bill.tokensHeld(model).contextWindow)),
      bill,
    )
  }

  /** An out-of-band response has not read the conversation, so a smaller figure does not mean that this became shorter. */
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
