import type { Call } from '../call.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'
import { type PlannedChoice, planChat } from './plan-chat.ts'
import { streamChat } from './stream-chat.ts'
import { validateChat } from './validate-chat.ts'

/** POST /v1/chat/completions */
export function createChat(call: Call): Reply {
  const request = validateChat(call)
  const plan = planChat(call, request)
  const headers = chatHeaders(call.identity, plan.outputTokens)
  const { pace } = request.model
  if (request.isStream) {
    return eventsReply(streamChat(plan, request.streamOptions), chatErrorFrame, pace, headers)
  }
  const completion = {
    id: plan.id,
    object: 'chat.completion',
    created: plan.created,
    model: plan.model,
    choices: plan.choices.map(choiceJson),
    ...(plan.usage === undefined ? {} : { usage: plan.usage }),
    service_tier: plan.tier,
    system_fingerprint: plan.fingerprint,
  }
  return jsonReply(200, completion, { headers, pace, tokens: plan.outputTokens })
}

function choiceJson(choice: PlannedChoice, index: number): object {
  const toolCalls = choice.toolCalls.map((tool) => ({
    id: tool.id,
    type: 'function',
    function: { name: tool.name, arguments: tool.argumentsJson },
  }))
  return {
    index,
    message: {
      role: 'assistant',
      content: choice.text === '' && (toolCalls.length > 0 || choice.refusal !== '') ? null : choice.text,
      refusal: choice.refusal === '' ? null : choice.refusal,
      annotations: [],
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    },
    logprobs: null,
    finish_reason: choice.finishReason,
  }
}

/** GET /v1/chat/completions: stored completions, of which the simulator keeps none. */
export function listChats(call: Call): Reply {
  const list = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }
  return jsonReply(200, list, { headers: chatHeaders(call.identity) })
}
