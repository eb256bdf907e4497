import { setTimeout as sleep } from 'node:timers/promises'
import type { CallEnd, UpstreamCall } from '../http/upstream-call.ts'
import { limits } from '../kernel/limits.ts'
import type { Metered } from '../metering/meter.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import { askUpstream, OBJECT_ID } from './ask-upstream.ts'
import type { AdmittedCall } from './call.ts'
import type { BillPlan } from './pricer.ts'
import type { ReplyPipeline } from './reply-pipeline.ts'

/** What becomes of a call upstream whose client has left: the bill is the same as if it had stayed. */

/** `cancel`: a call whose client left is cancelled where what it used can be told. `finish`: every call is read to its end. */
export type OnLeave = 'cancel' | 'finish'

/** A reply that its client has left, as far as it decides how long it is read on. */
export type LeftReply = Pick<ReplyPipeline, 'isError' | 'isStreamed' | 'isNearlyDone' | 'isSilent' | 'shown'>

/** A client that leaves ends the call upstream, at once or when it has been read on for as long as it is worth. */
export function leaveWithClient(
  { exchange, plan }: AdmittedCall,
  upstreamCall: UpstreamCall,
  reply: ReplyPipeline,
  onLeave: OnLeave,
): void {
  const { res } = exchange
  res.whenClosed.add(() => {
    if (res.writableFinished) return
    // What waited for the client to read waits no longer.
    reply.onDrain()
    const ms = readOnMs(reply, plan.bill, onLeave)
    if (ms === 0) return upstreamCall.abandon()
    const timer = setTimeout(() => upstreamCall.abandon(), ms)
    upstreamCall.ended.then(() => clearTimeout(timer))
  })
}

/**
 * How long a call is read on after its client has left, in milliseconds; 0 cancels it. Leaving early saves nothing of
 * what upstream has already worked: a reply that is nearly done is read on for its final figures, and one whose use
 * cannot be told from what was delivered is read to its end.
 */
export function readOnMs(reply: LeftReply, plan: BillPlan, onLeave: OnLeave): number {
  // What is free costs nothing, and neither does an error: there is nothing to learn from the rest of it.
  if (!plan.metered || reply.isError) return 0
  // What it has made is named when it is answered; from then on it can be asked for.
  if (plan.makes !== null) return reply.isStreamed ? limits.readOnMs : limits.finishMs
  if (onLeave === 'finish' || cannotBeTold(reply, plan.unseen())) return limits.finishMs
  if (reply.isNearlyDone) return limits.readOnMs
  // The usage of an answer that has just ended is on its way, and nothing else tells how much was reasoned for it.
  const reasons = plan.unseen().reasoning || reply.shown.reasons
  return reasons && !reply.isSilent ? limits.reasonedReadOnMs : 0
}

function cannotBeTold({ shown, isStreamed, isSilent }: LeftReply, unseen: UnseenWork): boolean {
  if (unseen.media || shown.toolsRan) return true
  // Summing up comes before the answer, and shows as a block or item when it is done.
  if (unseen.compaction && isSilent) return true
  // What a document will say of tools is not seen before it is whole.
  if (unseen.tools && !isStreamed) return true
  return unseen.context && !shown.inputKnown
}

/** Upstream may take a moment to close a response whose stream was cut. Pauses before each further question. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/** The usage that upstream itself states of a response that was cut, where it stores it. Null: what was observed is all. */
export async function askForStored(
  { plan, upstream }: AdmittedCall,
  observed: Metered | null,
  end: CallEnd,
  reply: Pick<ReplyPipeline, 'cut'>,
): Promise<Metered | null> {
  const id = observed?.objectId ?? null
  if (
    end.kind === 'complete' ||
    id === null ||
    plan.bill.makes !== null ||
    observed?.outputKnown ||
    !plan.bill.unseen().stored
  )
    return null
  // The client does not wait for an answer that is for the bill alone.
  await reply.cut()
  if (!OBJECT_ID.test(id)) return null
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await sleep(pauseMs)
    const answer = await askUpstream('chat', upstream, `/v1/responses/${id}`, 'responses')
    const stored = answer.kind === 'answered' ? answer.metered : null
    if (stored === null) return null
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return null
  }
  return null
}
