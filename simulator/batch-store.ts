import { BoundedMap } from './bounded-map.ts'
import type { JsonObject } from './json.ts'
import { storedBatchesBytesMax, storedBatchesMax } from './limits.ts'
import type { WorkClock } from './work-clock.ts'

export interface Batch {
  readonly id: string
  readonly createdAt: Date
  /** When the batch's work began, by the work clock. */
  readonly startedMs: number
  readonly size: number
  /** Members of the batch object that the request decided. */
  readonly echo: JsonObject
  /** The problems of the batch's requests; a batch with any fails. */
  readonly problems: readonly JsonObject[]
  /** How far the batch had come, in milliseconds of work, when it was cancelled. */
  cancelledAfterMs: number | null
  /** Works off the first `requests` of the batch and returns their outcome; called once, when the batch has ended. */
  readonly workOff: (requests: number) => JsonObject
  /** The outcome that `workOff` returned. */
  outcome: JsonObject | null
}

export type BatchStage = 'validating' | 'working' | 'closing' | 'ended'

const validatingMs = 1_000
const closingMs = 1_000
const workBaseMs = 5_000
const workPerRequestMs = 20

/** The batches of one surface, oldest forgotten first, and the answers of the ended batches. */
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

/** The stage of a batch now. The first look that finds the batch ended works it off. */
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

/** Cancels a batch; a batch whose work is over stays as it is. */
export function cancelBatch(batch: Batch, clock: WorkClock): void {
  const stage = stageOf(batch, clock)
  if (batch.cancelledAfterMs !== null || stage === 'closing' || stage === 'ended') return
  batch.cancelledAfterMs = clock.elapsedMs(batch.startedMs)
}

/** The time in seconds at which the batch came to a stage, as if the work clock had not been hurried. */
export function secondsAt(batch: Batch, stage: BatchStage): number {
  const workedMs = batch.cancelledAfterMs ?? validatingMs + workMs(batch)
  const ms = { validating: 0, working: validatingMs, closing: workedMs, ended: workedMs + closingMs }[stage]
  return Math.floor((batch.createdAt.getTime() + ms) / 1000)
}

function workMs(batch: Batch): number {
  return workBaseMs + batch.size * workPerRequestMs
}
