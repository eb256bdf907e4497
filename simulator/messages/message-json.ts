import type { JsonObject } from '../json.ts'
import type { ContentBlock, MessagePlan } from './plan-message.ts'

/** The message object. In a stream it opens without content and without an end. */
export function messageJson(
  plan: MessagePlan,
  usage: JsonObject | undefined,
  part: 'whole' | 'opening',
): JsonObject {
  const isWhole = part === 'whole'
  return {
    id: plan.id,
    type: 'message',
    role: 'assistant',
    model: plan.model,
    content: isWhole ? plan.blocks.map(blockJson) : [],
    stop_reason: isWhole ? plan.stopReason : null,
    stop_sequence: isWhole ? plan.stopSequence : null,
    stop_details: isWhole ? plan.stopDetails : null,
    container: null,
    diagnostics: null,
    ...(usage === undefined ? {} : { usage }),
  }
}

function blockJson(block: ContentBlock): JsonObject {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: block.thinking, signature: block.signature }
    case 'text':
      return { type: 'text', text: block.text, citations: null }
    case 'tool_use':
      return toolUseJson(block, parseArguments(block.argumentsJson))
  }
}

export function toolUseJson(block: ContentBlock & { type: 'tool_use' }, input: unknown): JsonObject {
  return { type: 'tool_use', id: block.id, name: block.name, input, caller: { type: 'direct' } }
}

/** Arguments that the output limit cut are no JSON any more; a whole message shows them as empty. */
function parseArguments(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}
