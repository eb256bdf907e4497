import type { Borrowed } from '../kernel/read-buffer.ts'
import type { ReplyHead } from './answer.ts'

/**
 * Somebody who looks at the bytes of a call as they pass, in both directions, and at how it ended. Like the meter it
 * sees a view of each chunk and can neither change, delay nor fail what it looks at. Most calls have none.
 */
export interface Onlooker {
  /** A chunk of the request's body on its way upstream. */
  readonly sent: (chunk: Borrowed) => void
  /** A chunk of the reply as upstream sent it. */
  readonly received: (chunk: Borrowed) => void
  /** Whether a JSON reply is kept back until this onlooker is done: the client may build on what it found. */
  readonly beforeAnswer: boolean
  /** The call is settled. */
  ended(call: SeenCall): Promise<void>
}

/** How a call ended, for those who looked at it. */
export interface SeenCall {
  readonly head: ReplyHead | null
  /** The reply came to its end. */
  readonly whole: boolean
  readonly sentBytes: number
}
