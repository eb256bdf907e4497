import type { Call } from '../call.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'
import { type PlannedCall, type PlannedChoice, planChat } from './plan-chat.ts'
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
  const { toolCalls } = choice
  return {
    index,
    message: {
      role: 'assistant',
      content: choice.text === '' && (toolCalls.length > 0 || choice.refusal !== '') ? null : choice.text,
      refusal: choice.refusal === '' ? null : choice.refusal,
      annotations: choice.annotations,
      ...callsJson(toolCalls),
    },
    logprobs: null,
    finish_reason: choice.finishReason,
  }
}

function callsJson(calls: readonly PlannedCall[]): object {
  const [first] = calls
  if (first === undefined) return {}
  if (first.kind === 'legacy') return { function_call: { name: first.name, arguments: first.argumentsJson } }
  const written = calls.map(({ id, kind, name, argumentsJson }) =>
    kind === 'custom'
      ? { id, type: 'custom', custom: { name, input: argumentsJson } }
      : { id, type: 'function', function: { name, arguments: argumentsJson } },
  )
  return { tool_calls: written }
}

/** GET /v1/chat/completions: stored completions, of which the simulator keeps none. */
export function listChats(call: Call): Reply {
  const list = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }
  return jsonReply(200, list, { headers: chatHeaders(call.identity) })
}
