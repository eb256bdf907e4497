import { setTimeout as sleep } from 'node:timers/promises'
import type { CallEnd, UpstreamCall } from '../http/upstream-call.ts'
import { limits } from '../kernel/limits.ts'
import type { Metered } from '../metering/meter.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import { askUpstream, OBJECT_ID } from './ask-upstream.ts'
import { isBrokenOff } from './bill.ts'
import type { AdmittedCall } from './call.ts'
import type { BillPlan } from './pricer.ts'
import type { ReplyPipeline } from './reply-pipeline.ts'

/** The end of a call upstream whose client has left: the bill is the same as if the client had stayed. */

/** `cancel`: a call whose client left is cancelled where its usage can be told. `finish`: every call is read to its end. */
export type OnLeave = 'cancel' | 'finish'

/** The parts of a reply that decide how long it is read on when its client has left. */
export type LeftReply = Pick<ReplyPipeline, 'isError' | 'isStreamed' | 'isNearlyDone' | 'isSilent' | 'shown'>

/** Ends the call upstream when its client leaves: at once, or when the reply was read on for as long as it is worth. */
export function leaveWithClient(
  { exchange, plan }: AdmittedCall,
  upstreamCall: UpstreamCall,
  reply: ReplyPipeline,
  onLeave: OnLeave,
): void {
  const { res } = exchange
  res.whenClosed.add(() => {
    if (res.writableFinished) return
    // The reply waits no longer for the client to read.
    reply.onDrain()
    const ms = readOnMs(reply, plan.bill, onLeave)
    if (ms === 0) return upstreamCall.abandon()
    const timer = setTimeout(() => upstreamCall.abandon(), ms)
    upstreamCall.ended.then(() => clearTimeout(timer))
  })
}

/**
 * How long a call is read on after its client has left, in milliseconds; 0 cancels it. Cancelling saves nothing of
 * the work that upstream has already done: a reply that is nearly done is read on for its final figures, and a reply whose
 * usage cannot be told from the delivered part is read to its end.
 */
export function readOnMs(reply: LeftReply, plan: BillPlan, onLeave: OnLeave): number {
  // A free call costs nothing, and neither does an error: the rest of the reply tells nothing that the bill needs.
  if (!plan.metered || reply.isError) return 0
  // The reply names the object that the call makes; from then on upstream can be asked for the object.
  if (plan.makes !== null) return reply.isStreamed ? limits.readOnMs : limits.finishMs
  if (onLeave === 'finish' || cannotBeTold(reply, plan.unseen())) return limits.finishMs
  if (reply.isNearlyDone) return limits.readOnMs
  // The usage of an answer that has just ended is on its way, and nothing else tells how much was reasoned for it.
  const reasons = plan.unseen().reasoning || reply.shown.reasons
  return reasons && !reply.isSilent ? limits.reasonedReadOnMs : 0
}

function cannotBeTold({ shown, isStreamed, isSilent }: LeftReply, unseen: UnseenWork): boolean {
  if (unseen.media || shown.toolsRan) return true
  // Compaction comes before the answer, and shows as a block or item when it is done.
  if (unseen.compaction && isSilent) return true
  // The tools that ran for a reply which is no stream are not seen before the reply is whole.
  if (unseen.tools && !isStreamed) return true
  return unseen.context && !shown.inputKnown
}

/** Pauses before each question: upstream may take a moment to close a response whose stream was cut. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/** The usage that upstream states of a stored response that was cut or broke off. Null: there is only the observed usage. */
export async function askForStored(
  { plan, upstream }: AdmittedCall,
  observed: Metered | null,
  end: CallEnd,
  reply: Pick<ReplyPipeline, 'cut'>,
): Promise<Metered | null> {
  const isWhole = end.kind === 'complete'
  const id = observed?.objectId ?? null
  if (
    observed === null ||
    id === null ||
    (isWhole && !isBrokenOff(observed)) ||
    plan.bill.makes !== null ||
    observed.outputKnown ||
    !plan.bill.unseen().stored
  )
    return null
  // The client does not wait for an answer that is for the bill alone. All of a reply that is whole has been sent by now.
  if (!isWhole) await reply.cut()
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
