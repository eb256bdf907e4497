import { limits } from '../../kernel/limits.ts'
import type { PlannedTurn, TurnCall } from './turn-call.ts'

/** A turn whose message was sent upstream. */
export interface Sent {
  readonly turn: TurnCall
  readonly planned: PlannedTurn
  readonly lane: string
  /** It adds input to a response that runs; upstream then goes on with a successor of that response. */
  readonly isSteer: boolean
}

/**
 * The turns of one lane. Upstream answers the requests of a lane one after the other, but does not say which message an event
 * answers. A turn is never taken for answered while it may still cost something: in doubt the largest request is the one that
 * runs, and holds stay until no doubt is left.
 */
export class ResponseLane {
  /** In the order of their messages. */
  readonly waiting: Sent[] = []
  readonly running: Sent[] = []
  /** The turn that has begun last, which can be steered. */
  last: Sent | null = null
  /** Bytes of input that upstream keeps for the next request of this lane. */
  keptBytes = 0
  /** How many of the waiting turns were answered with an error. */
  #errors = 0
  /** Steers that upstream has taken: the next response is theirs. */
  #accepted = 0

  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.running.length === 0
  }

  /**
   * A response has begun. Returns its turn, or null if none waits. `isDoubtful`: some of the waiting turns may have been answered
   * with an error.
   */
  begin(responseId: string | null, isDoubtful = false): Sent | null {
    const sent = this.#next(isDoubtful || this.#errors > 0)
    if (sent === null) return null
    this.waiting.splice(this.waiting.indexOf(sent), 1)
    if (sent.isSteer) this.#accepted = Math.max(0, this.#accepted - 1)
    this.run(sent, responseId)
    return sent
  }

  run(sent: Sent, responseId: string | null): void {
    sent.turn.responseId = responseId
    this.running.push(sent)
    this.last = sent
    if (!sent.isSteer) this.keptBytes = 0
  }

  /** The turn that upstream has begun or begins next, if it has not said so. Null while one runs. */
  get next(): Sent | null {
    return this.running.length > 0 ? null : this.#next(this.#errors > 0)
  }

  #next(isDoubtful: boolean): Sent | null {
    const steers = this.waiting.filter(({ isSteer }) => isSteer)
    const creates = this.waiting.filter(({ isSteer }) => !isSteer)
    if (this.#accepted > 0 && steers[0] !== undefined) return steers[0]
    const candidates = creates.length > 0 ? creates : steers
    return (isDoubtful ? largest(candidates) : candidates[0]) ?? null
  }

  find(responseId: string | null): Sent | undefined {
    return this.running.find(({ turn }) => turn.responseId === responseId)
  }

  end(sent: Sent): void {
    this.running.splice(this.running.indexOf(sent), 1)
    // A steer needs the lengths of the request, and not its text.
    const { planned } = sent
    if (this.last === sent)
      this.last = { ...sent, planned: { ...planned, request: { ...planned.request, pieces: null } } }
  }

  /** An error has answered a waiting turn. Returns the turns that are certain to be over. */
  fail(): readonly Sent[] {
    this.#errors += 1
    return this.rejected()
  }

  /** Where there were as many errors as turns wait, all of these are over. */
  rejected(): readonly Sent[] {
    return this.#errors === 0 || this.#errors < this.waiting.length ? [] : this.clear()
  }

  /** No waiting turn will begin. */
  clear(): readonly Sent[] {
    this.#errors = 0
    this.#accepted = 0
    return this.waiting.splice(0)
  }

  steerAccepted(): void {
    this.#accepted += 1
  }

  /** Upstream does not go on with a steer, or not by itself. */
  steerFailed(): Sent | null {
    const steer = this.waiting.find(({ isSteer }) => isSteer)
    if (steer === undefined) return null
    this.waiting.splice(this.waiting.indexOf(steer), 1)
    this.#accepted = Math.max(0, this.#accepted - 1)
    return steer
  }
}

/** The turn that may cost most: one that reads stored context, tools or media may read more than any message contains. */
function largest(turns: readonly Sent[]): Sent | undefined {
  let found = turns[0]
  for (const sent of turns) if (found === undefined || costOf(sent) > costOf(found)) found = sent
  return found
}

function costOf({ planned: { plan, request } }: Sent): number {
  const { context, tools, media } = plan.bill.unseen()
  return request.lengthBytes + (context || tools || media ? limits.socketMessageBytesMax : 0)
}
