import { chooseTools, type ToolChoice, type ToolDefinition } from './choose-tools.ts'
import type { JsonObject } from './json.ts'
import type { Model } from './models.ts'
import { sampleFromSchema } from './sample-json.ts'
import { composeAnswer, composeThoughts, countTokens, cutToTokens, seedFromText } from './text.ts'

// The output of the "model", before a surface gives it a shape. Every surface calls this module, so that a question
// has the same answer on each surface.

interface GenerateRequest extends ToolChoice {
  readonly model: Model
  /** The position among the choices of one request. */
  readonly choice?: number
  readonly outputTokensMax: number
  readonly thinkingTokens: number
  readonly stopSequences?: readonly string[]
  /** The schema of a structured answer, or undefined for prose. */
  readonly schema: JsonObject | undefined
  readonly announcesTools?: boolean
}

export interface ToolCall {
  readonly tool: ToolDefinition
  /** Valid JSON unless the output limit cut it; words for a tool that takes words. */
  readonly argumentsJson: string
}

export interface Generated {
  readonly thinking: string
  /** Calls of tools that upstream has run before it wrote the text. */
  readonly serverCalls: readonly ToolCall[]
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  readonly finish: 'end' | 'length' | 'stop-sequence' | 'tool'
  readonly stopSequence: string | null
  readonly thinkingTokens: number
  readonly outputTokens: number
}

export function generate(request: GenerateRequest): Generated {
  const { topic, model, choice = 0 } = request
  const seed = seedFromText(topic, `${model.snapshot}/${choice}`)
  let tokensLeft = request.outputTokensMax
  let isCut = false
  const write = (wanted: string): string => {
    const written = cutToTokens(wanted, tokensLeft)
    tokensLeft -= countTokens(written)
    isCut ||= written.length < wanted.length
    return written
  }
  const call = (tools: readonly ToolDefinition[]): ToolCall[] => {
    const calls: ToolCall[] = []
    for (const tool of tools) {
      if (isCut || tokensLeft === 0) break
      const takesText = tool.schema === undefined
      const wanted = takesText
        ? composeAnswer(topic, seed, 24)
        : JSON.stringify(sampleFromSchema(tool.schema, topic))
      calls.push({ tool, argumentsJson: write(wanted) })
    }
    return calls
  }
  const tools = chooseTools(request)
  const clientTools = tools.filter((tool) => tool.isServer !== true)
  const thinking = write(composeThoughts(seed, request.thinkingTokens))
  const serverCalls = call(tools.filter((tool) => tool.isServer === true))
  const { text: stopped, sequence } = stopAt(textOf(request, clientTools, seed), request.stopSequences ?? [])
  const text = write(stopped)
  const toolCalls = call(clientTools)
  const end = sequence !== null ? 'stop-sequence' : toolCalls.length > 0 ? 'tool' : 'end'
  return {
    thinking,
    serverCalls,
    text,
    toolCalls,
    finish: isCut ? 'length' : end,
    stopSequence: isCut ? null : sequence,
    thinkingTokens: countTokens(thinking),
    outputTokens: request.outputTokensMax - tokensLeft,
  }
}

function textOf(request: GenerateRequest, tools: readonly ToolDefinition[], seed: number): string {
  if (tools.length > 0) {
    const names = tools.map((tool) => tool.name).join(' and ')
    return request.announcesTools === true ? `Let me use ${names} for that.` : ''
  }
  if (request.schema !== undefined) return JSON.stringify(sampleFromSchema(request.schema, request.topic))
  return composeAnswer(request.topic, seed, request.behaviours.tokens)
}

function stopAt(text: string, sequences: readonly string[]): { text: string; sequence: string | null } {
  let found: { text: string; sequence: string | null } = { text, sequence: null }
  for (const sequence of sequences) {
    const at = sequence === '' ? -1 : found.text.indexOf(sequence)
    if (at !== -1) found = { text: text.slice(0, at), sequence }
  }
  return found
}
