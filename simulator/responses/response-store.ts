import { BoundedMap } from '../bounded-map.ts'
import { storedResponsesBytesMax, storedResponsesMax } from '../limits.ts'
import { type Pace, tokensMs } from '../pace.ts'
import type { WorkClock } from '../work-clock.ts'
import type { ResponseState } from './response-json.ts'
import { cutPlan, outputTokensOf, type ResponsePlan } from './response-plan.ts'

export interface StoredResponse {
  /** The plan; a shorter plan replaces it once the response was broken off. */
  plan: ResponsePlan
  readonly turns: readonly unknown[]
  /** Bytes of all turns, the earlier turns included: turns stay in memory as long as a later response needs them. */
  readonly bytes: number
  /** The work that writes the response at this moment: a stream, or time in the background. Null: the response is final. */
  work: { kind: 'stream' } | { kind: 'background'; startedMs: number; pace: Pace } | null
}

const queuedMs = 1_000

/** Responses kept for a later GET or for the turn that continues them. */
export class ResponseStore {
  readonly #responses = new BoundedMap<StoredResponse>(storedResponsesMax, storedResponsesBytesMax)

  add(response: StoredResponse): void {
    this.#responses.set(response.plan.id, response, response.bytes)
  }

  find(id: string): StoredResponse | undefined {
    return this.#responses.get(id)
  }

  remove(id: string): boolean {
    return this.#responses.delete(id)
  }
}

export function stateOf({ plan, work }: StoredResponse, clock: WorkClock): ResponseState {
  if (work === null) return 'final'
  if (work.kind === 'stream') return 'in_progress'
  const elapsedMs = clock.elapsedMs(work.startedMs)
  const workMs = work.pace.firstByteMs + tokensMs(work.pace, outputTokensOf(plan.items))
  return elapsedMs < queuedMs ? 'queued' : elapsedMs < queuedMs + workMs ? 'in_progress' : 'final'
}

/** Ends background work where it stands. */
export function cancelWork(stored: StoredResponse, clock: WorkClock): void {
  const { work } = stored
  if (work?.kind !== 'background' || stateOf(stored, clock) === 'final') return
  const writingMs = clock.elapsedMs(work.startedMs) - queuedMs - work.pace.firstByteMs
  const tokens = Math.max(0, Math.floor((writingMs * work.pace.tokensPerSecond) / 1000))
  stored.plan = cutPlan(stored.plan, tokens)
  stored.work = null
}
