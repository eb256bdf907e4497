import type { Call } from '../call.ts'
import { chooseTools } from '../choose-tools.ts'
import { type Generated, generate } from '../generate.ts'
import { asArray, type JsonObject, mergeJson } from '../json.ts'
import type { Model } from '../models.ts'
import { countTokens } from '../tokens.ts'
import { readPrompt } from './chat-prompt.ts'
import type { ChatRequest } from './validate-chat.ts'

export interface PlannedCall {
  readonly id: string
  /** `function`, `custom`, or `legacy` for the form that came before tools. */
  readonly kind: string
  readonly name: string
  readonly argumentsJson: string
}

export interface PlannedChoice {
  readonly text: string
  readonly refusal: string
  readonly toolCalls: readonly PlannedCall[]
  readonly annotations: readonly JsonObject[]
  readonly finishReason: string
}

export interface ChatPlan {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly tier: string
  readonly fingerprint: string
  readonly choices: readonly PlannedChoice[]
  /** The usage; undefined when the request asked for no usage to be reported. */
  readonly usage: JsonObject | undefined
  readonly outputTokens: number
  /** Characters that are random enough to pad deltas with. */
  readonly padding: string
}

export const refusalText = "I'm sorry, but I can't help with that."

const finishReasons = {
  end: 'stop',
  length: 'length',
  'stop-sequence': 'stop',
  tool: 'tool_calls',
  refusal: 'stop',
} as const satisfies Record<Generated['finish'], string>

export function planChat(call: Call, request: ChatRequest): ChatPlan {
  const { identity, behaviours, memory } = call
  const { model, body } = request
  const prompt = readPrompt(asArray(body.messages), [...asArray(body.tools), ...asArray(body.functions)])
  const cache = memory.promptCache.useAutomatic(model.snapshot, prompt.text, identity.now().getTime())
  const tools = chooseTools(
    request.tools,
    request.toolWish,
    prompt.topic,
    prompt.isToolResult,
    request.parallelTools,
    behaviours.call,
  )
  let outputTokens = 0
  let thinkingTokens = 0
  const choices = Array.from({ length: request.choices }, (_, index): PlannedChoice => {
    const written = generate({
      topic: prompt.topic,
      variant: `${model.snapshot}/${index}`,
      tokensWanted: behaviours.tokens,
      outputTokensMax: request.outputTokensMax,
      thinkingTokens: request.reasoningTokens,
      stopSequences: request.stops,
      schema: request.schema,
      tools,
      saysWhyBeforeTools: false,
      refuses: behaviours.refusal === true,
    })
    const refusal = written.finish === 'refusal' ? refusalText : ''
    outputTokens += written.outputTokens + countTokens(refusal)
    thinkingTokens += written.thinkingTokens
    const text = refusal === '' ? written.text : ''
    const isLegacy = written.toolCalls.some(({ tool }) => tool.kind === 'legacy')
    return {
      text,
      refusal,
      toolCalls: written.toolCalls.map(({ tool, argumentsJson }) => ({
        id: `call_${identity.base62(24)}`,
        kind: tool.kind,
        name: tool.name,
        argumentsJson,
      })),
      annotations: request.searches && text !== '' ? [citation(text)] : [],
      finishReason: written.finish === 'tool' && isLegacy ? 'function_call' : finishReasons[written.finish],
    }
  })
  return {
    id: `chatcmpl-${identity.base62(29)}`,
    created: Math.floor(identity.now().getTime() / 1000),
    model: behaviours.model ?? model.snapshot,
    tier: behaviours.tier ?? request.tier,
    fingerprint: `fp_${identity.hex(10)}`,
    choices,
    usage: chatUsage(call, model, prompt.tokens, cache, outputTokens, thinkingTokens),
    outputTokens,
    padding: identity.base62(24),
  }
}

function citation(text: string): JsonObject {
  const place = { start_index: 0, end_index: text.length }
  const page = { title: 'Simulator', url: 'https://simulator.example/' }
  return { type: 'url_citation', url_citation: { ...place, ...page } }
}

/** Cache writes are reported since the 5.6 family, with which cache writes began to cost. */
export function reportsCacheWrites(model: Model): boolean {
  return /^gpt-(5\.6|6)/.test(model.id)
}

function chatUsage(
  call: Call,
  model: Model,
  promptTokens: number,
  cache: { read: number; written: number },
  completionTokens: number,
  thinkingTokens: number,
): JsonObject | undefined {
  if (call.behaviours.noUsage === true) return undefined
  const cached = Math.min(cache.read, promptTokens)
  const written = Math.min(cache.written, promptTokens - cached)
  return mergeJson(
    {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: {
        cached_tokens: cached,
        audio_tokens: 0,
        ...(reportsCacheWrites(model) ? { cache_write_tokens: written } : {}),
      },
      completion_tokens_details: {
        reasoning_tokens: thinkingTokens,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    call.behaviours.usage ?? {},
  )
}
