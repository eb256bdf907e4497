import type { Behaviours } from '../behaviours.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { countTokens, splitIntoDeltas, splitIntoPieces } from '../tokens.ts'
import { messageJson, toolUseJson } from './message-json.ts'
import { deltaUsage, startUsage } from './message-usage.ts'
import type { ContentBlock, MessagePlan } from './plan-message.ts'

const argumentsPieceLength = 12

/** The events of a message, in upstream's order. */
export function* streamMessage(plan: MessagePlan, behaviours: Behaviours): Generator<Frame> {
  const opening = messageJson(plan, startUsage(plan, behaviours), 'opening')
  yield namedFrame('message_start', { type: 'message_start', message: opening })
  for (const [index, block] of plan.blocks.entries()) {
    yield namedFrame('content_block_start', {
      type: 'content_block_start',
      index,
      content_block: empty(block),
    })
    if (index === 0) yield ping
    yield* blockDeltas(block, index)
    yield namedFrame('content_block_stop', { type: 'content_block_stop', index })
  }
  if (plan.blocks.length === 0) yield ping
  const usage = deltaUsage(plan, behaviours)
  yield namedFrame('message_delta', {
    type: 'message_delta',
    delta: {
      stop_reason: plan.stopReason,
      stop_sequence: plan.stopSequence,
      stop_details: plan.stopDetails,
      container: plan.container,
    },
    ...(usage === undefined ? {} : { usage }),
  })
  yield namedFrame('message_stop', { type: 'message_stop' })
}

const ping = namedFrame('ping', { type: 'ping' })

function empty(block: ContentBlock): object {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'text':
      return { type: 'text', text: '', citations: null }
    case 'tool_use':
    case 'server_tool_use':
      return toolUseJson(block, {})
    case 'server_tool_result':
      return block.block
  }
}

function* blockDeltas(block: ContentBlock, index: number): Generator<Frame> {
  switch (block.type) {
    case 'thinking':
      for (const thinking of splitIntoDeltas(block.thinking)) {
        yield delta(index, { type: 'thinking_delta', thinking }, thinking)
      }
      yield delta(index, { type: 'signature_delta', signature: block.signature }, '')
      return
    case 'text':
      for (const text of splitIntoDeltas(block.text)) yield delta(index, { type: 'text_delta', text }, text)
      return
    case 'tool_use':
    case 'server_tool_use':
      yield delta(index, { type: 'input_json_delta', partial_json: '' }, '')
      for (const json of splitIntoPieces(block.argumentsJson, argumentsPieceLength)) {
        yield delta(index, { type: 'input_json_delta', partial_json: json }, json)
      }
  }
}

function delta(index: number, part: object, text: string): Frame {
  const event = { type: 'content_block_delta', index, delta: part }
  return namedFrame('content_block_delta', event, countTokens(text), true)
}
