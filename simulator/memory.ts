import type { BoundedMap } from './bounded-map.ts'
import type { JsonObject } from './json.ts'
import type { PromptCache } from './prompt-cache.ts'
import type { StoredResponse } from './responses/response-plan.ts'

export interface Batch {
  readonly id: string
  readonly createdAt: Date
  /** When the batch's work began, by the work clock. */
  readonly startedMs: number
  readonly size: number
  /** Members of the batch object that the request decided. */
  readonly echo: JsonObject
  /** How far the batch had come, in milliseconds of work, when it was cancelled. */
  cancelledAfterMs: number | null
  /** Runs the first `count` requests and returns the outcome; called once, when the batch has ended. */
  readonly run: (count: number) => JsonObject
  outcome: JsonObject | null
}

export interface StoredFile {
  readonly id: string
  readonly filename: string
  readonly purpose: string
  readonly createdAt: Date
  readonly content: Buffer
}

/** State that outlives a request, all of it bounded. */
export interface Memory {
  readonly promptCache: PromptCache
  readonly files: BoundedMap<StoredFile>
  readonly responses: BoundedMap<StoredResponse>
  /** Responses that only the socket of the call can continue. */
  readonly unstored?: BoundedMap<StoredResponse>
  readonly messageBatches: BoundedMap<Batch>
  readonly chatBatches: BoundedMap<Batch>
}
