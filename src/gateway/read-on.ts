import { limits } from '../kernel/limits.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import type { CarriedReply } from './carry-reply.ts'
import type { BillPlan } from './pricer.ts'

/** `cancel`: a call whose client left is cancelled where what it used can be told. `finish`: every call is read to its end. */
export type OnLeave = 'cancel' | 'finish'

/**
 * How long a call is read on after its client has left, in milliseconds; 0 cancels it. Leaving early saves nothing of
 * what upstream has already worked: a reply that is nearly done is read on for its final figures, and one whose use
 * cannot be told from what was delivered is read to its end.
 */
export function readOnMs(reply: CarriedReply, plan: BillPlan, onLeave: OnLeave): number {
  // What is free costs nothing, and neither does an error: there is nothing to learn from the rest of it.
  if (!plan.metered || reply.isError) return 0
  if (onLeave === 'finish' || cannotBeTold(reply, plan.unseen())) return limits.finishMs
  return reply.isNearlyDone ? limits.readOnMs : 0
}

function cannotBeTold({ shown, isStreamed, isSilent }: CarriedReply, unseen: UnseenWork): boolean {
  if (unseen.media || shown.toolsRan) return true
  // Summing up comes before the answer, and shows as a block or item when it is done.
  if (unseen.compaction && isSilent) return true
  // What a document will say of tools is not seen before it is whole.
  if (unseen.tools && !isStreamed) return true
  return unseen.context && !shown.inputKnown
}
