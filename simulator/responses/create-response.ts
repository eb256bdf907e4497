import type { Call } from '../call.ts'
import { responseErrorFrame } from '../chat/chat-wire.ts'
import { findModel } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { eventFrame, type Frame, jsonReply, type Reply, streamReply } from '../reply.ts'
import { planResponse, type ResponseRequest, readResponseRequest } from './plan-response.ts'
import {
  cancelWork,
  outputTokensOf,
  type ResponsePlan,
  responseJson,
  type StoredResponse,
  stateOf,
  writeResponse,
} from './response-plan.ts'

const instantly = { firstByteMs: 0, tokensPerSecond: Number.POSITIVE_INFINITY }

/** POST /v1/responses */
export function createResponse(call: Call): Reply {
  const request = readResponseRequest(call)
  const { pace } = request.model
  const plan = planResponse(call, request)
  const stored = storeResponse(call, request, plan)
  if (request.isStream) return streamReply(framesAfter(stored, -1), responseErrorFrame, pace)
  if (request.isBackground) return jsonReply(responseJson(plan, 'queued'))
  return jsonReply(responseJson(plan, 'final'), { pace, tokens: outputTokensOf(plan.items) })
}

/** Stores a response: for everybody, or for the later turns of its socket. */
export function storeResponse(call: Call, request: ResponseRequest, plan: ResponsePlan): StoredResponse {
  const work = request.isBackground ? { startedMs: call.clock.nowMs(), pace: request.model.pace } : null
  const stored: StoredResponse = { plan, turns: request.turns, work }
  const { responses, unstored } = call.memory
  if (request.isStored) responses.set(plan.id, stored)
  else unstored?.set(plan.id, stored)
  return stored
}

/** The events of a response after the event with that number. A stream that was read to its end ends the work. */
function* framesAfter(stored: StoredResponse, after: number): Generator<Frame> {
  for (const { event, tokens, isDelta } of writeResponse(stored.plan)) {
    if (Number(event['sequence_number']) > after) yield eventFrame(event.type, event, tokens, isDelta)
  }
  stored.work = null
}

/** POST /v1/responses/input_tokens */
export function countResponseTokens(call: Call): Reply {
  const { tokens } = readResponseRequest(call).prompt
  return jsonReply({ object: 'response.input_tokens', input_tokens: tokens })
}

/** GET /v1/responses/{id}, as JSON or, with ?stream=true, as the events after `starting_after`. */
export function getResponse(call: Call): Reply {
  const stored = requireStored(call)
  if (call.query.get('stream') !== 'true')
    return jsonReply(responseJson(stored.plan, stateOf(stored, call.clock)))
  const after = Number(call.query.get('starting_after') ?? -1)
  const model = findModel('chat', String(stored.plan.echo['model']))
  return streamReply(framesAfter(stored, after), responseErrorFrame, model?.pace ?? instantly)
}

/** POST /v1/responses/{id}/cancel */
export function cancelResponse(call: Call): Reply {
  const stored = requireStored(call)
  if (!stored.plan.isBackground) {
    throw new Refusal(400, 'Only responses created with background=true can be cancelled.')
  }
  cancelWork(stored, call.clock)
  return jsonReply(responseJson(stored.plan, 'final'))
}

/** DELETE /v1/responses/{id} */
export function deleteResponse(call: Call): Reply {
  const { id } = requireStored(call).plan
  call.memory.responses.delete(id)
  return jsonReply({ id, object: 'response', deleted: true })
}

function requireStored({ memory, param }: Call): StoredResponse {
  const stored = memory.responses.get(param)
  if (stored === undefined) throw new Refusal(404, `Response with id '${param}' not found.`)
  return stored
}
