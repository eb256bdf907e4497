import { setTimeout as sleep } from 'node:timers/promises'
import type { CallEnd, UpstreamCall } from '../http/upstream-call.ts'
import { limits } from '../kernel/limits.ts'
import type { Metered } from '../metering/meter.ts'
import { isObjectId, pathOf } from '../providers/deferred-kinds.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import { askUpstream } from './ask-upstream.ts'
import { isBrokenOff } from './bill.ts'
import type { AdmittedCall } from './call.ts'
import type { CallPlan } from './pricer.ts'
import type { ReplyPipeline } from './reply-pipeline.ts'

/** The end of a call upstream whose client has left: the bill is the same as if the client had stayed. */

/** `cancel`: a call whose client left is cancelled where its usage can be told. `finish`: every call is read to its end. */
export type OnLeave = 'cancel' | 'finish'

/** The parts of a reply that decide how long it is read on when its client has left. */
export type LeftReply = Pick<ReplyPipeline, 'isError' | 'isStreamed' | 'isNearlyDone' | 'shown'>

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
    const ms = readOnMs(reply, plan, onLeave)
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
export function readOnMs(reply: LeftReply, plan: CallPlan, onLeave: OnLeave): number {
  // A free call costs nothing, and neither does an error: the rest of the reply tells nothing that the bill needs.
  if (!plan.metered || reply.isError) return 0
  // The reply names the object that the call makes; from then on upstream can be asked for the object.
  if (plan.makes !== null) return reply.isStreamed ? limits.readOnMs : limits.finishMs
  if (onLeave === 'finish' || cannotBeTold(reply, plan.unseen())) return limits.finishMs
  return reply.isNearlyDone ? limits.readOnMs : 0
}

/** Only what the reply has shown counts: tools that were declared may never run. */
function cannotBeTold({ shown }: LeftReply, unseen: UnseenWork): boolean {
  return unseen.media || shown.toolsRan || (unseen.context && !shown.inputKnown)
}

/** Pauses before each question: upstream may take a moment to close a response whose stream was cut. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/** The id of a stored response that was cut or broke off before it stated its usage: upstream can be asked for it. */
export function storedId({ plan }: AdmittedCall, observed: Metered | null, end: CallEnd): string | null {
  if (observed === null || observed.objectId === null || observed.outputKnown) return null
  if (end.kind === 'complete' && !isBrokenOff(observed)) return null
  if (plan.makes !== null || !plan.unseen().stored) return null
  return isObjectId(observed.objectId) ? observed.objectId : null
}

/**
 * The usage that upstream states of a stored response. `running`: it states it later. `missing`: upstream does not show it. Null:
 * there is only the observed usage.
 */
export async function askForStored(
  id: string,
  { upstream }: AdmittedCall,
): Promise<Metered | 'running' | 'missing' | null> {
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await sleep(pauseMs)
    const { metered: stored } = await askUpstream('chat', upstream, pathOf('response', id), 'responses')
    if (stored === null) return 'missing'
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return null
  }
  return 'running'
}
