import type { Delegate } from '../../providers/realtime-events.ts'
import { RecentIds, SeenCounts } from './seen-ids.ts'
import type { SilenceTimer } from './silence-timer.ts'
import type { TurnCall, TurnSettlements } from './turn-call.ts'

/** Work that a client has requested, and that has not begun. */
export interface Requested {
  readonly turn: TurnCall
  readonly kind: Delegate['kind']
  readonly eventId: string | null
  /** The settlements of the socket that has requested it. */
  readonly settlements: TurnSettlements
  /** Another socket of the session has seen it begin, and meters it. */
  onTaken(): void
  /** Work that begins after this has expired is not the requested one. */
  readonly silence: SilenceTimer
  /** An error may have been about it. */
  isRejected: boolean
}

export const SEEN_MAX = 256

/** Shared by the sockets of a session on this node: several may see the same work, and it is billed once. */
export class SharedWork {
  readonly requested: Requested[] = []
  readonly begunIds = new RecentIds(SEEN_MAX)
  readonly decisions = new SeenCounts(SEEN_MAX)
}

/** By the object of the session that its sockets have in common. */
export const WORK = new WeakMap<object, SharedWork>()
