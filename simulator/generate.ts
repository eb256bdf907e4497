import { seedFromText } from './chance.ts'
import { composeAnswer, composeThoughts } from './compose-text.ts'
import type { JsonObject } from './json.ts'
import { sampleFromSchema } from './sample-json.ts'
import { countTokens, cutToTokens } from './tokens.ts'

// The output of the "model", before any surface gives it a shape. Every surface calls this module, so that a
// question has the same answer on each surface.

export interface ToolDefinition {
  readonly name: string
  /** How the tool's surface writes a call of the tool. */
  readonly kind: string
  /** The JSON schema of the tool's arguments. */
  readonly schema: unknown
  /** Whether the tool takes words instead of JSON. */
  readonly takesText?: boolean
  /** Whether upstream runs the tool by itself, and the answer goes on after the tool's result. */
  readonly isServer?: boolean
}

export interface GenerateRequest {
  /** The last thing the user said. */
  readonly topic: string
  /** Tells apart requests with the same topic, and the choices of one request. */
  readonly variant: string
  readonly tokensWanted: number | undefined
  readonly outputTokensMax: number
  readonly thinkingTokens: number
  readonly stopSequences: readonly string[]
  /** The schema of a structured answer, or undefined for prose. */
  readonly schema: JsonObject | undefined
  readonly tools: readonly ToolDefinition[]
  readonly saysWhyBeforeTools: boolean
  readonly refuses: boolean
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
  readonly finish: 'end' | 'length' | 'stop-sequence' | 'tool' | 'refusal'
  readonly stopSequence: string | null
  readonly thinkingTokens: number
  readonly outputTokens: number
}

export function generate(request: GenerateRequest): Generated {
  // A refusal comes before any output, unless the request asked for an answer of some length as well.
  if (request.refuses && request.tokensWanted === undefined) return refused
  const seed = seedFromText(request.topic, request.variant)
  let tokensLeft = request.outputTokensMax

  const thoughts = request.thinkingTokens > 0 ? composeThoughts(seed, request.thinkingTokens) : ''
  const thinking = cutToTokens(thoughts, tokensLeft)
  const thinkingTokens = countTokens(thinking)
  tokensLeft -= thinkingTokens

  let isCut = thinking.length < thoughts.length
  const callTools = (tools: readonly ToolDefinition[]): ToolCall[] => {
    const calls: ToolCall[] = []
    for (const tool of tools) {
      if (isCut) break
      const wanted =
        tool.takesText === true ? composeAnswer(request.topic, seed, 24) : sampleJson(tool, request)
      const argumentsJson = cutToTokens(wanted, tokensLeft)
      isCut = argumentsJson.length < wanted.length
      if (argumentsJson === '') break
      tokensLeft -= countTokens(argumentsJson)
      calls.push({ tool, argumentsJson })
    }
    return calls
  }

  const serverCalls = callTools(request.tools.filter((tool) => tool.isServer === true))
  const clientTools = request.tools.filter((tool) => tool.isServer !== true)
  const whole = writeText(request, clientTools, seed)
  const stopped = stopAt(whole, request.stopSequences)
  const text = cutToTokens(stopped.text, tokensLeft)
  tokensLeft -= countTokens(text)
  isCut = isCut || text.length < stopped.text.length
  const toolCalls = callTools(clientTools)

  const outputTokens = request.outputTokensMax - tokensLeft
  const written = { thinking, serverCalls, text, toolCalls, thinkingTokens, outputTokens }
  if (request.refuses) return { ...written, finish: 'refusal', stopSequence: null }
  if (isCut) return { ...written, finish: 'length', stopSequence: null }
  if (stopped.sequence !== null)
    return { ...written, finish: 'stop-sequence', stopSequence: stopped.sequence }
  return { ...written, finish: toolCalls.length > 0 ? 'tool' : 'end', stopSequence: null }
}

const refused: Generated = {
  thinking: '',
  serverCalls: [],
  text: '',
  toolCalls: [],
  finish: 'refusal',
  stopSequence: null,
  thinkingTokens: 0,
  outputTokens: 0,
}

function sampleJson(tool: ToolDefinition, request: GenerateRequest): string {
  return JSON.stringify(sampleFromSchema(tool.schema, request.topic))
}

function writeText(request: GenerateRequest, tools: readonly ToolDefinition[], seed: number): string {
  if (tools.length > 0) {
    const names = tools.map((tool) => tool.name).join(' and ')
    return request.saysWhyBeforeTools ? `Let me use ${names} for that.` : ''
  }
  if (request.schema !== undefined) return JSON.stringify(sampleFromSchema(request.schema, request.topic))
  return composeAnswer(request.topic, seed, request.tokensWanted)
}

function stopAt(text: string, sequences: readonly string[]): { text: string; sequence: string | null } {
  let found: { text: string; sequence: string | null } = { text, sequence: null }
  for (const sequence of sequences) {
    const at = sequence === '' ? -1 : found.text.indexOf(sequence)
    if (at !== -1) found = { text: text.slice(0, at), sequence }
  }
  return found
}
