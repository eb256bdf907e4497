import type { Call } from '../call.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { whenSeen } from './get-response.ts'
import { planResponse, readPromptOf } from './plan-response.ts'
import { responseJson } from './response-json.ts'
import { cutPlan, outputTokensOf } from './response-plan.ts'
import type { StoredResponse } from './response-store.ts'
import { responseErrorFrame, streamResponse } from './stream-response.ts'
import { validateResponse } from './validate-response.ts'

/** POST /v1/responses */
export function createResponse(call: Call): Reply {
  const request = validateResponse(call)
  const plan = planResponse(call, request)
  const { isStream, isBackground } = request
  const { pace } = request.model
  const outputTokens = outputTokensOf(plan.items)
  const stored: StoredResponse = {
    plan,
    turns: request.turns,
    bytes: request.turnsBytes + outputTokens * 4,
    work: isBackground
      ? { kind: 'background', startedMs: call.clock.nowMs(), pace }
      : isStream
        ? { kind: 'stream' }
        : null,
  }
  if (request.isStored) call.memory.responses.add(stored)
  const headers = chatHeaders(call.identity, outputTokens)
  if (isStream) {
    const onEnd = isBackground ? whenSeen(stored) : whenLeft(stored)
    const frames = streamResponse(plan, { obfuscates: request.obfuscates, onEnd })
    return eventsReply(frames, responseErrorFrame, pace, headers)
  }
  if (isBackground) return jsonReply(200, responseJson(plan, 'queued'), { headers })
  return jsonReply(200, responseJson(plan, 'final'), { headers, pace, tokens: outputTokens })
}

/** A stream that nobody reads to its end stops there: what is stored is what was written by then. */
function whenLeft(stored: StoredResponse): (tokens: number | null) => void {
  return (tokens) => {
    stored.work = null
    if (tokens !== null) stored.plan = cutPlan(stored.plan, tokens)
  }
}

/** POST /v1/responses/input_tokens */
export function countResponseTokens(call: Call): Reply {
  const { tokens } = readPromptOf(validateResponse(call))
  const count = { object: 'response.input_tokens', input_tokens: tokens }
  return jsonReply(200, count, { headers: chatHeaders(call.identity) })
}
