import type { PlannedTurn } from './turn-call.ts'

const IDS_MAX = 256

/** The latest responses of a socket whose turns have ended, by id, because upstream may name them again. */
export class EndedResponses {
  /** Null if the response is billed; its call if it was settled without stated usage. */
  readonly #calls = new Map<string, PlannedTurn | null>()

  /** `call`: if the response was settled without stated usage, which may still come. */
  add(id: string | null, call: PlannedTurn | null = null): void {
    if (id === null) return
    this.#calls.set(id, call)
    const [oldest] = this.#calls.keys()
    if (this.#calls.size > IDS_MAX && oldest !== undefined) this.#calls.delete(oldest)
  }

  /** Undefined if no response with this id has ended. */
  callOf(id: string | null): PlannedTurn | null | undefined {
    return id === null ? undefined : this.#calls.get(id)
  }
}
