import type { Call } from '../call.ts'
import { generate } from '../generate.ts'
import { isObject, type JsonObject, mergeJson } from '../json.ts'
import { choicesMax } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, jsonReply, type Reply } from '../reply.ts'
import { dataFrame, doneFrame, type Frame } from '../sse.ts'
import { countTokens, splitIntoDeltas } from '../tokens.ts'
import {
  invalid,
  parseChatBody,
  readBoolean,
  readChoices,
  readStops,
  readStreamOptions,
  readTokenLimit,
  requireModel,
} from './chat-body.ts'
import { chatErrorFrame } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'

interface CompletionBody {
  model?: unknown
  prompt?: unknown
  n?: unknown
  echo?: unknown
  max_tokens?: unknown
  stop?: unknown
  stream?: unknown
  stream_options?: unknown
}

interface Choice {
  readonly text: string
  readonly finishReason: string
}

const outputTokensDefault = 16
const completionsMax = 2_048

/** POST /v1/completions, the endpoint of the oldest models. */
export function createCompletion(call: Call): Reply {
  const body: CompletionBody = parseChatBody(call)
  const model = requireModel(body.model, 'v1/completions', ['completion'])
  const prompts = readPrompts(body.prompt)
  const perPrompt = readChoices(body.n, choicesMax)
  const isStream = readBoolean(body.stream, 'stream')
  const options = readStreamOptions(body.stream_options, isStream)
  const limit = readTokenLimit(body.max_tokens, 'max_tokens', 0, model) ?? outputTokensDefault
  const { identity, behaviours } = call
  if (prompts.length * perPrompt > completionsMax) {
    throw new Refusal(400, `You asked for more than ${completionsMax} completions.`, { param: 'prompt' })
  }

  let outputTokens = 0
  const choices = prompts.flatMap((prompt) =>
    Array.from({ length: perPrompt }, (_, index): Choice => {
      const written = generate({
        topic: prompt.text,
        variant: `${model.snapshot}/${index}`,
        tokensWanted: behaviours.tokens,
        outputTokensMax: limit,
        thinkingTokens: 0,
        stopSequences: readStops(body.stop),
        schema: undefined,
        tools: [],
        saysWhyBeforeTools: false,
        refuses: behaviours.refusal === true,
      })
      outputTokens += written.outputTokens
      const finishReason = written.finish === 'refusal' ? 'content_filter' : written.finish
      return {
        text: body.echo === true ? `${prompt.text}${written.text}` : written.text,
        finishReason: finishReason === 'length' || finishReason === 'content_filter' ? finishReason : 'stop',
      }
    }),
  )

  const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.tokens, 0)
  const usage: JsonObject | undefined =
    behaviours.noUsage === true
      ? undefined
      : mergeJson(
          {
            prompt_tokens: promptTokens,
            completion_tokens: outputTokens,
            total_tokens: promptTokens + outputTokens,
          },
          behaviours.usage ?? {},
        )
  const frame = {
    id: `cmpl-${identity.base62(29)}`,
    object: 'text_completion',
    created: Math.floor(identity.now().getTime() / 1000),
    model: behaviours.model ?? model.snapshot,
  }
  const headers = chatHeaders(identity, outputTokens)
  if (isStream) {
    const shown = options.includeUsage ? usage : undefined
    return eventsReply(streamCompletion(frame, choices, shown), chatErrorFrame, model.pace, headers)
  }
  const completion = {
    ...frame,
    choices: choices.map((choice, index) => choiceJson(choice.text, index, choice.finishReason)),
    ...(usage === undefined ? {} : { usage }),
  }
  return jsonReply(200, completion, { headers, pace: model.pace, tokens: outputTokens })
}

function* streamCompletion(
  frame: object,
  choices: readonly Choice[],
  usage: JsonObject | undefined,
): Generator<Frame> {
  const nothingYet = usage === undefined ? {} : { usage: null }
  for (const [index, choice] of choices.entries()) {
    for (const text of splitIntoDeltas(choice.text)) {
      const chunk = { ...frame, choices: [choiceJson(text, index, null)], ...nothingYet }
      yield dataFrame(chunk, countTokens(text), true)
    }
    yield dataFrame({ ...frame, choices: [choiceJson('', index, choice.finishReason)], ...nothingYet })
  }
  if (usage !== undefined) yield dataFrame({ ...frame, choices: [], usage })
  yield doneFrame
}

function choiceJson(text: string, index: number, finishReason: string | null): object {
  return { text, index, logprobs: null, finish_reason: finishReason }
}

interface Prompt {
  readonly text: string
  readonly tokens: number
}

/** A prompt is a text, a list of texts, a list of token numbers, or a list of such lists. */
function readPrompts(prompt: unknown): Prompt[] {
  if (prompt === undefined || prompt === null) return [{ text: '', tokens: 0 }]
  if (typeof prompt === 'string') return [{ text: prompt, tokens: countTokens(prompt) }]
  if (!Array.isArray(prompt) || prompt.length === 0) throw invalid('prompt', 'a string or an array')
  if (typeof prompt[0] === 'number') return [{ text: '', tokens: prompt.length }]
  return prompt.map((item: unknown) => {
    if (typeof item === 'string') return { text: item, tokens: countTokens(item) }
    if (Array.isArray(item)) return { text: '', tokens: item.length }
    throw invalid('prompt', isObject(item) ? 'strings, not objects' : 'strings or arrays of integers')
  })
}
