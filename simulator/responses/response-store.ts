import { BoundedMap } from '../bounded-map.ts'
import { storedResponsesBytesMax, storedResponsesMax } from '../limits.ts'
import type { ResponsePlan } from './response-plan.ts'

export interface StoredResponse {
  readonly plan: ResponsePlan
  readonly turns: readonly unknown[]
  /** Of all turns, the earlier ones included: they stay in memory as long as a later response needs them. */
  readonly bytes: number
}

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
