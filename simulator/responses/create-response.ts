import type { Call } from '../call.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { whenSeen } from './get-response.ts'
import { planResponse, readPromptOf } from './plan-response.ts'
import { responseJson } from './response-json.ts'
import { outputTokensOf, type ResponsePlan } from './response-plan.ts'
import type { StoredResponse } from './response-store.ts'
import { responseErrorFrame, streamResponse } from './stream-response.ts'
import { type ResponseRequest, validateResponse } from './validate-response.ts'

/** POST /v1/responses */
export function createResponse(call: Call): Reply {
  const request = validateResponse(call)
  const { isStream, isBackground } = request
  const { pace } = request.model
  const work: StoredResponse['work'] = isBackground
    ? { kind: 'background', startedMs: call.clock.nowMs(), pace }
    : isStream
      ? { kind: 'stream' }
      : null
  const stored = keepResponse(call, request, planResponse(call, request), work)
  const { plan } = stored
  const outputTokens = outputTokensOf(plan.items)
  const headers = chatHeaders(call.identity, outputTokens)
  if (isStream) {
    const onEnd = isBackground ? whenSeen(stored) : whenLeft(stored)
    const frames = streamResponse(plan, { obfuscates: request.obfuscates, onEnd })
    return eventsReply(frames, responseErrorFrame, pace, headers)
  }
  if (isBackground) return jsonReply(200, responseJson(plan, 'queued'), { headers })
  return jsonReply(200, responseJson(plan, 'final'), { headers, pace, tokens: outputTokens })
}

/** Remembers a response, if the request lets it be stored. */
export function keepResponse(
  call: Call,
  request: ResponseRequest,
  plan: ResponsePlan,
  work: StoredResponse['work'],
): StoredResponse {
  const bytes = request.turnsBytes + outputTokensOf(plan.items) * 4
  const stored: StoredResponse = { plan, turns: request.turns, bytes, work }
  if (request.isStored) call.memory.responses.add(stored)
  return stored
}

/** A stream that the client does not read to its end stops there: the stored response keeps the output written by then. */
export function whenLeft(stored: StoredResponse): (cut: ResponsePlan | null) => void {
  return (cut) => {
    stored.work = null
    if (cut !== null) stored.plan = cut
  }
}

/** POST /v1/responses/input_tokens */
export function countResponseTokens(call: Call): Reply {
  const { tokens } = readPromptOf(validateResponse(call))
  const count = { object: 'response.input_tokens', input_tokens: tokens }
  return jsonReply(200, count, { headers: chatHeaders(call.identity) })
}
