import { BoundedMap } from './bounded-map.ts'
import type { JsonObject } from './json.ts'
import { storedBatchesBytesMax, storedBatchesMax } from './limits.ts'
import type { WorkClock } from './work-clock.ts'

export interface Batch {
  readonly id: string
  readonly createdAt: Date
  /** When its work began, by the clock of such work. */
  readonly startedMs: number
  readonly size: number
  /** Members of the batch object that the request decided. */
  readonly echo: JsonObject
  /** What is wrong with its requests; such a batch fails. */
  readonly problems: readonly JsonObject[]
  /** How far it had come, in milliseconds of work, when it was cancelled. */
  cancelledAfterMs: number | null
  /** Works off so many of its requests and says what came of them; asked once, when the batch has ended. */
  readonly workOff: (requests: number) => JsonObject
  /** What `workOff` said. */
  outcome: JsonObject | null
}

export type BatchStage = 'validating' | 'working' | 'closing' | 'ended'

const validatingMs = 1_000
const closingMs = 1_000
const workBaseMs = 5_000
const workPerRequestMs = 20

/** The batches of one surface, oldest forgotten first, and what the ended ones answered. */
export class BatchStore {
  readonly #batches = new BoundedMap<Batch>(storedBatchesMax, storedBatchesBytesMax)
  readonly answers = new BoundedMap<Buffer>(storedBatchesMax, storedBatchesBytesMax)

  add(batch: Batch, bytes: number): void {
    this.#batches.set(batch.id, batch, bytes)
  }

  find(id: string): Batch | undefined {
    return this.#batches.get(id)
  }

  remove(id: string): void {
    this.#batches.delete(id)
    this.answers.delete(id)
  }

  newestFirst(): Batch[] {
    return this.#batches.values().reverse()
  }
}

/** Where a batch is now. The first look that finds it ended works it off. */
export function stageOf(batch: Batch, clock: WorkClock): BatchStage {
  if (batch.outcome !== null) return 'ended'
  const elapsedMs = clock.elapsedMs(batch.startedMs)
  const workedUntilMs = batch.cancelledAfterMs ?? validatingMs + workMs(batch)
  if (elapsedMs >= workedUntilMs + closingMs) {
    const share = (workedUntilMs - validatingMs) / workMs(batch)
    batch.outcome = batch.workOff(Math.floor(batch.size * Math.max(0, share)))
    return 'ended'
  }
  if (elapsedMs >= workedUntilMs) return 'closing'
  return elapsedMs < validatingMs ? 'validating' : 'working'
}

/** Does nothing to a batch whose work is over. */
export function cancelBatch(batch: Batch, clock: WorkClock): void {
  const stage = stageOf(batch, clock)
  if (batch.cancelledAfterMs !== null || stage === 'closing' || stage === 'ended') return
  batch.cancelledAfterMs = clock.elapsedMs(batch.startedMs)
}

/** The time in seconds at which the batch came to a stage, had nobody hurried it. */
export function secondsAt(batch: Batch, stage: BatchStage): number {
  const workedMs = batch.cancelledAfterMs ?? validatingMs + workMs(batch)
  const ms = { validating: 0, working: validatingMs, closing: workedMs, ended: workedMs + closingMs }[stage]
  return Math.floor((batch.createdAt.getTime() + ms) / 1000)
}

function workMs(batch: Batch): number {
  return workBaseMs + batch.size * workPerRequestMs
}
