import type { ResponseInput } from './response-usages.ts'
import { SilenceTimer } from './silence-timer.ts'
import type { TurnCall } from './turn-call.ts'

/** A turn whose `response.create` was sent upstream, and whose response has not begun. */
export interface RequestedResponse {
  readonly turn: TurnCall
  readonly eventId: string | null
  /** The model that the message itself names. */
  readonly model: string | undefined
  /** The response does not become part of the conversation. */
  readonly isOutOfBand: boolean
  /** Input in the message that only this response reads. */
  readonly ownInput: ResponseInput
}

interface Waiting extends RequestedResponse {
  readonly silence: SilenceTimer
}

/** The responses of a Realtime session that the client has requested, as long as they may begin. */
export class RequestedResponses {
  readonly #onSilent: () => void
  readonly #onRejected: (requested: RequestedResponse) => void
  readonly #requested: Waiting[] = []
  /** Responses that an error seems to have ended. A response that begins after all takes the hold of one of them. */
  readonly #rejected: Waiting[] = []

  /**
   * `onSilent`: a response has not begun for so long that it no longer counts as running. `onRejected`: a rejected response
   * has not begun for as long, so that its hold may go.
   */
  constructor(onSilent: () => void, onRejected: (requested: RequestedResponse) => void) {
    this.#onSilent = onSilent
    this.#onRejected = onRejected
  }

  /** How many are expected to begin soon. */
  get running(): number {
    return this.#requested.filter(({ silence }) => !silence.hasExpired).length
  }

  /** How many have a hold and were not rejected, silent ones included. */
  get open(): number {
    return this.#requested.length
  }

  get mayBegin(): boolean {
    return this.#requested.length + this.#rejected.length > 0
  }

  add(requested: RequestedResponse): void {
    this.#requested.push({ ...requested, silence: new SilenceTimer(this.#onSilent) })
  }

  /**
   * Takes the response that an error is about. An error without an event id answers a message without one, or one that upstream
   * could not read, so it may be about another response than the first. Their holds are alike: it does not matter which one stays.
   */
  takeFailed(aboutEventId: string | null): RequestedResponse | null {
    const named = this.#requested.find(({ eventId }) => eventId === aboutEventId)
    return this.#take(named ?? (aboutEventId === null ? this.#requested[0] : undefined))
  }

  /** The error may have been about another message: the hold stays for a while, for a response that begins after all. */
  keepRejected(requested: RequestedResponse): void {
    const silence = new SilenceTimer(() => {
      this.#take(rejected)
      this.#onRejected(requested)
    })
    const rejected = { ...requested, silence }
    this.#rejected.push(rejected)
  }

  /** Takes the response that begins. Upstream answers in order, so silent ones come last. */
  takeNext(): RequestedResponse | null {
    return this.#take(
      this.#requested.find(({ silence }) => !silence.hasExpired) ?? this.#rejected[0] ?? this.#requested[0],
    )
  }

  end(): {
    readonly unanswered: readonly RequestedResponse[]
    readonly rejected: readonly RequestedResponse[]
  } {
    for (const { silence } of [...this.#requested, ...this.#rejected]) silence.end()
    return { unanswered: this.#requested.splice(0), rejected: this.#rejected.splice(0) }
  }

  #take(waiting: Waiting | undefined): RequestedResponse | null {
    if (waiting === undefined) return null
    waiting.silence.end()
    for (const all of [this.#requested, this.#rejected])
      if (all.includes(waiting)) all.splice(all.indexOf(waiting), 1)
    return waiting
  }
}
