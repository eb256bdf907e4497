import type { JsonObject } from '../json.ts'
import { dataFrame, doneFrame, type Frame } from '../sse.ts'
import { countTokens, splitIntoDeltas, splitIntoPieces } from '../tokens.ts'
import { obfuscation, type StreamOptions } from './chat-body.ts'
import type { ChatPlan, PlannedCall, PlannedChoice } from './plan-chat.ts'

const argumentsPieceLength = 12

/** The chunks of a completion. Choices come one after the other, which clients may not rely on. */
export function* streamChat(plan: ChatPlan, options: StreamOptions): Generator<Frame> {
  const chunk = (choices: readonly object[], usage: JsonObject | null, delta: string): JsonObject => ({
    id: plan.id,
    object: 'chat.completion.chunk',
    created: plan.created,
    model: plan.model,
    service_tier: plan.tier,
    system_fingerprint: plan.fingerprint,
    choices,
    // Only a client that asked for usage sees the member, as null until the last chunk.
    ...(options.includeUsage && plan.usage !== undefined ? { usage } : {}),
    ...(options.obfuscates ? { obfuscation: obfuscation(plan.padding, delta) } : {}),
  })
  for (const [index, choice] of plan.choices.entries()) {
    for (const { delta, words } of deltasOf(choice)) {
      const choices = [{ index, delta, logprobs: null, finish_reason: null }]
      yield dataFrame(chunk(choices, null, words), countTokens(words), words !== '')
    }
    yield dataFrame(
      chunk([{ index, delta: {}, logprobs: null, finish_reason: choice.finishReason }], null, ''),
    )
  }
  if (options.includeUsage && plan.usage !== undefined) yield dataFrame(chunk([], plan.usage, ''))
  yield doneFrame
}

interface Delta {
  readonly delta: JsonObject
  readonly words: string
}

function* deltasOf(choice: PlannedChoice): Generator<Delta> {
  if (choice.refusal !== '') {
    yield { delta: { role: 'assistant', content: null, refusal: '' }, words: '' }
    for (const refusal of splitIntoDeltas(choice.refusal)) yield { delta: { refusal }, words: refusal }
    return
  }
  const content = choice.toolCalls.length > 0 ? null : ''
  yield { delta: { role: 'assistant', content, refusal: null }, words: '' }
  for (const text of splitIntoDeltas(choice.text)) yield { delta: { content: text }, words: text }
  if (choice.annotations.length > 0) yield { delta: { annotations: choice.annotations }, words: '' }
  for (const [index, call] of choice.toolCalls.entries()) yield* callDeltas(index, call)
}

function* callDeltas(index: number, { id, kind, name, argumentsJson }: PlannedCall): Generator<Delta> {
  const pieces = splitIntoPieces(argumentsJson, argumentsPieceLength)
  if (kind === 'legacy') {
    yield { delta: { function_call: { name, arguments: '' } }, words: '' }
    for (const json of pieces) yield { delta: { function_call: { arguments: json } }, words: json }
    return
  }
  const member = kind === 'custom' ? 'input' : 'arguments'
  const opening = { index, id, type: kind, [kind]: { name, [member]: '' } }
  yield { delta: { tool_calls: [opening] }, words: '' }
  for (const json of pieces) {
    yield { delta: { tool_calls: [{ index, [kind]: { [member]: json } }] }, words: json }
  }
}
