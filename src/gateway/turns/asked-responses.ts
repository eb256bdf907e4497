import { Patience } from './patience.ts'
import type { Came } from './response-usages.ts'
import type { TurnCall } from './turn-call.ts'

/** A turn whose `response.create` upstream has, and which it has not begun. */
export interface Asked {
  readonly turn: TurnCall
  readonly eventId: string | null
  /** That it names itself. */
  readonly model: string | undefined
  readonly isBeside: boolean
  /** What its message brings for it alone. */
  readonly own: Came
}

interface Waiting extends Asked {
  readonly patience: Patience
}

/** The responses of a Realtime session that were asked for, as long as they may begin. */
export class AskedResponses {
  readonly #onSilent: () => void
  readonly #onRejected: (asked: Asked) => void
  readonly #asked: Waiting[] = []
  /** Those that an error has ended. If a response begins after all, the hold of one of them is its. */
  readonly #rejected: Waiting[] = []

  /** `onSilent`: one is waited for no more. `onRejected`: one that an error was about has not begun for a while. */
  constructor(onSilent: () => void, onRejected: (asked: Asked) => void) {
    this.#onSilent = onSilent
    this.#onRejected = onRejected
  }

  /** That are waited for. */
  get running(): number {
    return this.#asked.filter(({ patience }) => !patience.isLost).length
  }

  /** That have a hold and were not refused. */
  get open(): number {
    return this.#asked.length
  }

  get mayBegin(): boolean {
    return this.#asked.length + this.#rejected.length > 0
  }

  add(asked: Asked): void {
    this.#asked.push({ ...asked, patience: new Patience(this.#onSilent) })
  }

  /**
   * The one that an error is about. Those without an id are answered without one, and so is what upstream cannot read: of
   * two it may be the other. Holds are alike, so it does not matter whose stays.
   */
  failed(aboutEventId: string | null): Asked | null {
    const named = this.#asked.find(({ eventId }) => eventId === aboutEventId)
    return this.#take(named ?? (aboutEventId === null ? this.#asked[0] : undefined))
  }

  /** The error may be about another message: for a while what it held is for nothing but a response that begins. */
  keepRejected(asked: Asked): void {
    const patience = new Patience(() => {
      this.#take(rejected)
      this.#onRejected(asked)
    })
    const rejected = { ...asked, patience }
    this.#rejected.push(rejected)
  }

  /** The one that begins. Upstream answers in order, so that it is hardly one of which nothing was heard for long. */
  takeNext(): Asked | null {
    return this.#take(
      this.#asked.find(({ patience }) => !patience.isLost) ?? this.#rejected[0] ?? this.#asked[0],
    )
  }

  /** All that were not refused, and then all that were. */
  end(): { readonly unanswered: readonly Asked[]; readonly rejected: readonly Asked[] } {
    for (const { patience } of [...this.#asked, ...this.#rejected]) patience.end()
    return { unanswered: this.#asked.splice(0), rejected: this.#rejected.splice(0) }
  }

  #take(waiting: Waiting | undefined): Asked | null {
    if (waiting === undefined) return null
    waiting.patience.end()
    for (const all of [this.#asked, this.#rejected])
      if (all.includes(waiting)) all.splice(all.indexOf(waiting), 1)
    return waiting
  }
}
