import type { Call } from '../call.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { findModel } from '../models.ts'
import type { Pace } from '../pace.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import type { Frame } from '../sse.ts'
import { responseJson } from './response-json.ts'
import type { ResponsePlan } from './response-plan.ts'
import { cancelWork, type StoredResponse, stateOf } from './response-store.ts'
import { responseErrorFrame, streamResponse } from './stream-response.ts'

const instantly: Pace = { firstByteMs: 0, tokensPerSecond: Number.POSITIVE_INFINITY }

/** GET /v1/responses/{id}, as JSON or, with ?stream=true, as the events after `starting_after`. */
export function getResponse(call: Call): Reply {
  const stored = requireStored(call)
  if (call.query.get('stream') !== 'true') return asItStands(call, stored)
  const after = Number(call.query.get('starting_after') ?? -1)
  if (!Number.isInteger(after)) throw new Refusal(400, 'Invalid starting_after.', { param: 'starting_after' })
  const model = findModel('chat', String(stored.plan.echo['model']))
  const frames = streamResponse(stored.plan, { obfuscates: false, onEnd: whenSeen(stored) })
  return eventsReply(
    framesAfter(frames, after),
    responseErrorFrame,
    model?.pace ?? instantly,
    chatHeaders(call.identity),
  )
}

/** A background response is final from the moment when a stream has shown a client its end. */
export function whenSeen(stored: StoredResponse): (cut: ResponsePlan | null) => void {
  return (cut) => {
    if (cut === null && stored.work?.kind === 'background') stored.work = null
  }
}

function* framesAfter(frames: Iterable<Frame>, after: number): Generator<Frame> {
  let sequence = 0
  for (const frame of frames) {
    if (sequence > after) yield frame
    sequence += 1
  }
}

/** POST /v1/responses/{id}/cancel */
export function cancelResponse(call: Call): Reply {
  const stored = requireStored(call)
  if (!stored.plan.isBackground) {
    throw new Refusal(400, 'Only responses created with background=true can be cancelled.')
  }
  cancelWork(stored, call.clock)
  return asItStands(call, stored)
}

/** DELETE /v1/responses/{id} */
export function deleteResponse(call: Call): Reply {
  const { plan } = requireStored(call)
  call.memory.responses.remove(plan.id)
  const deleted = { id: plan.id, object: 'response', deleted: true }
  return jsonReply(200, deleted, { headers: chatHeaders(call.identity) })
}

export function requireStored(call: Call): StoredResponse {
  const id = call.params[0] ?? ''
  const stored = call.memory.responses.find(id)
  if (stored === undefined) throw new Refusal(404, `Response with id '${id}' not found.`)
  return stored
}

function asItStands(call: Call, stored: StoredResponse): Reply {
  const response = responseJson(stored.plan, stateOf(stored, call.clock))
  return jsonReply(200, response, { headers: chatHeaders(call.identity) })
}
