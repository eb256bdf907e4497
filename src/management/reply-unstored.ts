import { type Refusal, refuse } from '../kernel/errors.ts'
import { ONCE_HEADER } from './read-once.ts'
import { type OwnReply, replyJson } from './route.ts'

/** Answers with what no cache between us and the client may keep. */
export function replyUnstored(status: number, value: unknown): OwnReply {
  return replyJson(status, value, ['cache-control', 'no-store'])
}

/** The same for a command that its `Idempotency-Key` showed to be a repetition. */
export function replyRepeated(status: number, value: unknown): OwnReply {
  return replyJson(status, value, ['cache-control', 'no-store', 'idempotent-replayed', 'true'])
}

export function refuseOtherCommand(): Refusal {
  return refuse('conflict', `This ${ONCE_HEADER} was used for another request.`, { param: ONCE_HEADER })
}
