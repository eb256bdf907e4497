import { setTimeout as sleep } from 'node:timers/promises'
import { firstValue } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import { providerCredential, upstreamTarget } from '../providers/surfaces.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'
import { createMeter } from '../providers/usage/create-meter.ts'
import type { AdmittedCall } from './call.ts'
import { type CallEnd, forward, type UpstreamCall } from './forward.ts'
import type { BillPlan } from './pricer.ts'
import type { ReplyPipeline } from './reply-pipeline.ts'
import type { Upstream } from './upstream-pool.ts'

/** What becomes of a call upstream whose client has left: the bill is the same as if it had stayed. */

/** `cancel`: a call whose client left is cancelled where what it used can be told. `finish`: every call is read to its end. */
export type OnLeave = 'cancel' | 'finish'

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
function readOnMs(reply: ReplyPipeline, plan: BillPlan, onLeave: OnLeave): number {
  // What is free costs nothing, and neither does an error: there is nothing to learn from the rest of it.
  if (!plan.metered || reply.isError) return 0
  if (onLeave === 'finish' || cannotBeTold(reply, plan.unseen())) return limits.finishMs
  return reply.isNearlyDone ? limits.readOnMs : 0
}

function cannotBeTold({ shown, isStreamed, isSilent }: ReplyPipeline, unseen: UnseenWork): boolean {
  if (unseen.media || shown.toolsRan) return true
  // Summing up comes before the answer, and shows as a block or item when it is done.
  if (unseen.compaction && isSilent) return true
  // What a document will say of tools is not seen before it is whole.
  if (unseen.tools && !isStreamed) return true
  return unseen.context && !shown.inputKnown
}

/** An id that can stand in a path as it is. */
const RESPONSE_ID = /^[A-Za-z0-9_-]{1,256}$/

/** Upstream may take a moment to close a response whose stream was cut. Pauses before each further question. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/** The usage that upstream itself states of a response that was cut, where it stores it. Null: what was observed is all. */
export async function askForStored(
  { plan, upstream }: AdmittedCall,
  observed: Metered | null,
  end: CallEnd,
  reply: ReplyPipeline,
): Promise<Metered | null> {
  const id = observed?.objectId ?? null
  if (end.kind === 'complete' || id === null || observed?.outputKnown || !plan.bill.unseen().stored)
    return null
  // The client does not wait for an answer that is for the bill alone.
  await reply.cut()
  if (!RESPONSE_ID.test(id)) return null
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await sleep(pauseMs)
    const stored = await ask(id, upstream)
    if (stored === null) return null
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return null
  }
  return null
}

/** Null: upstream does not know the response, or cannot be reached. */
async function ask(id: string, upstream: Upstream): Promise<Metered | null> {
  const { url, key } = upstream
  let meter: Meter | null = null
  const call = forward(
    upstream.pool,
    {
      method: 'GET',
      target: upstreamTarget('chat', url, { path: `/v1/responses/${id}`, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential('chat', key)),
        ...['accept', 'application/json', 'accept-encoding', 'identity'],
      ],
      body: null,
    },
    {
      head({ status, headers }) {
        const contentType = firstValue(headers, 'content-type')
        if (status === 200) meter = createMeter('responses', { status, contentType })
      },
      data(chunk) {
        meter?.write(chunk)
        return true
      },
    },
  )
  const timer = setTimeout(() => call.abandon(), limits.storedAnswerMs)
  const end = await call.ended
  clearTimeout(timer)
  return end.kind === 'complete' ? ((meter as Meter | null)?.end(true) ?? null) : null
}
