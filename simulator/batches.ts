import type { Call, Handler } from './call.ts'
import type { JsonObject } from './json.ts'
import type { Batch } from './memory.ts'
import type { WorkClock } from './pace.ts'
import { Refusal } from './refusal.ts'

const workBaseMs = 7_000
const workPerRequestMs = 20

export function newBatch(call: Call, id: string, size: number, echo: JsonObject, run: Batch['run']): Batch {
  const createdAt = call.identity.now()
  const startedMs = call.clock.nowMs()
  return { id, createdAt, startedMs, size, echo, cancelledAfterMs: null, run, outcome: null }
}

/** Whether the batch has ended. The first call that finds the batch ended runs its requests. */
export function hasEnded(batch: Batch, clock: WorkClock): boolean {
  if (batch.outcome !== null) return true
  const wholeMs = workBaseMs + batch.size * workPerRequestMs
  const endMs = batch.cancelledAfterMs ?? wholeMs
  if (clock.elapsedMs(batch.startedMs) < endMs) return false
  batch.outcome = batch.run(Math.min(batch.size, Math.floor((batch.size * endMs) / wholeMs)))
  return true
}

export function cancelBatch(batch: Batch, clock: WorkClock): void {
  if (batch.cancelledAfterMs !== null || hasEnded(batch, clock)) return
  batch.cancelledAfterMs = clock.elapsedMs(batch.startedMs)
}

/** When the batch ends, as if the work clock had not been hurried. */
export function endOf(batch: Batch): Date {
  const workMs = batch.cancelledAfterMs ?? workBaseMs + batch.size * workPerRequestMs
  return new Date(batch.createdAt.getTime() + workMs)
}

/** Answers one request of a batch as the endpoint itself would have done. */
export function runRequest(
  call: Call,
  handle: Handler,
  body: JsonObject,
  errorJson: (refusal: Refusal, requestId: string) => JsonObject,
): { readonly status: number; readonly json: unknown } {
  try {
    if (body['stream'] === true) throw new Refusal(400, 'stream: not supported in a batch')
    const { status, frames } = handle({ ...call, body: Buffer.from(JSON.stringify(body)) })
    const [frame] = frames
    return { status, json: JSON.parse(frame?.bytes.toString() ?? '') }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { status: error.status, json: errorJson(error, call.requestId) }
  }
}

/** The outcome of a batch in JSON lines. */
export function toJsonl(lines: readonly object[]): Buffer {
  return Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}
