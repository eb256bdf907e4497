import type { Call } from '../call.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { messageJson } from './message-json.ts'
import { finalUsage } from './message-usage.ts'
import { messagesErrorFrame } from './messages-error.ts'
import { messagesHeaders, newMessagesRequestId } from './messages-headers.ts'
import { planMessage } from './plan-message.ts'
import { countPromptTokens } from './prompt-blocks.ts'
import { streamMessage } from './stream-message.ts'
import {
  parseMessagesBody,
  requireModelAndMessages,
  requireVersion,
  validateMessages,
} from './validate-messages.ts'

/** POST /v1/messages */
export function createMessage(call: Call): Reply {
  const request = validateMessages(call)
  const { identity, behaviours } = call
  const headers = messagesHeaders(identity, newMessagesRequestId(identity))
  const plan = planMessage(call, request)
  const { pace } = request.model
  if (request.isStream) {
    return eventsReply(streamMessage(plan, behaviours), messagesErrorFrame, pace, headers)
  }
  const message = messageJson(plan, finalUsage(plan, behaviours), 'whole')
  return jsonReply(200, message, { headers, pace, tokens: plan.outputTokens })
}

/** POST /v1/messages/count_tokens */
export function countMessageTokens(call: Call): Reply {
  requireVersion(call)
  const body = parseMessagesBody(call)
  requireModelAndMessages(body)
  const headers = messagesHeaders(call.identity, newMessagesRequestId(call.identity))
  return jsonReply(200, { input_tokens: countPromptTokens(body) }, { headers })
}
