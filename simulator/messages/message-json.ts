import { type JsonObject, parseJson } from '../json.ts'
import type { ContentBlock, MessagePlan } from './plan-message.ts'

/** The message object. In a stream the message opens without content and without an end. */
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
    container: isWhole ? plan.container : null,
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
    case 'server_tool_use':
      // Arguments that the output limit cut are no JSON any more; a whole message shows them as empty.
      return toolUseJson(block, parseJson(block.argumentsJson) ?? {})
    case 'server_tool_result':
      return block.block
  }
}

export function toolUseJson(
  block: ContentBlock & { type: 'tool_use' | 'server_tool_use' },
  input: unknown,
): JsonObject {
  const { type, id, name } = block
  const toolset = type === 'tool_use' && block.toolset !== null ? { toolset_name: block.toolset } : {}
  return { type, id, name, input, caller: { type: 'direct' }, ...toolset }
}
