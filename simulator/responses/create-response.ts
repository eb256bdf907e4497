import type { Call } from '../call.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { findModel } from '../models.ts'
import type { Pace } from '../pace.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import type { Frame } from '../sse.ts'
import { planResponse, readPromptOf } from './plan-response.ts'
import { responseJson } from './response-json.ts'
import type { StoredResponse } from './response-store.ts'
import { responseErrorFrame, streamResponse } from './stream-response.ts'
import { validateResponse } from './validate-response.ts'

/** POST /v1/responses */
export function createResponse(call: Call): Reply {
  const request = validateResponse(call)
  const plan = planResponse(call, request)
  if (request.isStored) {
    const bytes = request.turnsBytes + plan.outputTokens * 4
    call.memory.responses.add({ plan, turns: request.turns, bytes })
  }
  const headers = chatHeaders(call.identity, plan.outputTokens)
  const { pace } = request.model
  if (request.isStream) {
    return eventsReply(streamResponse(plan, request.obfuscates), responseErrorFrame, pace, headers)
  }
  // Work in the background is done at once here, but shows only at the first GET.
  if (request.isBackground) return jsonReply(200, responseJson(plan, 'queued'), { headers })
  return jsonReply(200, responseJson(plan, 'final'), { headers, pace, tokens: plan.outputTokens })
}

/** POST /v1/responses/input_tokens */
export function countResponseTokens(call: Call): Reply {
  const { tokens } = readPromptOf(validateResponse(call))
  const count = { object: 'response.input_tokens', input_tokens: tokens }
  return jsonReply(200, count, { headers: chatHeaders(call.identity) })
}

const instantly: Pace = { firstByteMs: 0, tokensPerSecond: Number.POSITIVE_INFINITY }

/** GET /v1/responses/{id}, as JSON or, with ?stream=true, as the events after `starting_after`. */
export function getResponse(call: Call): Reply {
  const { plan } = requireStored(call)
  const headers = chatHeaders(call.identity)
  if (call.query.get('stream') !== 'true') return jsonReply(200, responseJson(plan, 'final'), { headers })
  const after = Number(call.query.get('starting_after') ?? -1)
  if (!Number.isInteger(after)) throw new Refusal(400, 'Invalid starting_after.', { param: 'starting_after' })
  const model = findModel('chat', String(plan.echo['model']))
  return eventsReply(
    framesAfter(streamResponse(plan, false), after),
    responseErrorFrame,
    model?.pace ?? instantly,
    headers,
  )
}

function* framesAfter(frames: Iterable<Frame>, after: number): Generator<Frame> {
  let sequence = 0
  for (const frame of frames) {
    if (sequence > after) yield frame
    sequence += 1
  }
}

/** DELETE /v1/responses/{id} */
export function deleteResponse(call: Call): Reply {
  const { plan } = requireStored(call)
  call.memory.responses.remove(plan.id)
  const deleted = { id: plan.id, object: 'response', deleted: true }
  return jsonReply(200, deleted, { headers: chatHeaders(call.identity) })
}

function requireStored(call: Call): StoredResponse {
  const id = call.params[0] ?? ''
  const stored = call.memory.responses.find(id)
  if (stored === undefined) throw new Refusal(404, `Response with id '${id}' not found.`)
  return stored
}
