import { seedFromText } from './chance.ts'
import { composeAnswer, composeThoughts } from './compose-text.ts'
import type { JsonObject } from './json.ts'
import { sampleFromSchema } from './sample-json.ts'
import { countTokens, cutToTokens } from './tokens.ts'

// What the "model" writes, before any surface gives it a shape. Every surface asks here, so that a
// question has the same answer wherever it is put.

export interface ToolDefinition {
  readonly name: string
  readonly schema: unknown
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
  readonly name: string
  /** Valid JSON unless the output limit cut it. */
  readonly argumentsJson: string
}

export interface Generated {
  readonly thinking: string
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

  const whole = writeText(request, seed)
  const stopped = stopAt(whole, request.stopSequences)
  const text = cutToTokens(stopped.text, tokensLeft)
  const textTokens = countTokens(text)
  tokensLeft -= textTokens

  const toolCalls: ToolCall[] = []
  let toolTokens = 0
  let isCut = text.length < stopped.text.length || thinking.length < thoughts.length
  for (const tool of request.tools) {
    if (isCut) break
    const wanted = JSON.stringify(sampleFromSchema(tool.schema, request.topic))
    const argumentsJson = cutToTokens(wanted, tokensLeft)
    isCut = argumentsJson.length < wanted.length
    if (argumentsJson === '') break
    const tokens = countTokens(argumentsJson)
    tokensLeft -= tokens
    toolTokens += tokens
    toolCalls.push({ name: tool.name, argumentsJson })
  }

  const outputTokens = thinkingTokens + textTokens + toolTokens
  const written = { thinking, text, toolCalls, thinkingTokens, outputTokens }
  if (request.refuses) return { ...written, finish: 'refusal', stopSequence: null }
  if (isCut) return { ...written, finish: 'length', stopSequence: null }
  if (stopped.sequence !== null)
    return { ...written, finish: 'stop-sequence', stopSequence: stopped.sequence }
  return { ...written, finish: toolCalls.length > 0 ? 'tool' : 'end', stopSequence: null }
}

const refused: Generated = {
  thinking: '',
  text: '',
  toolCalls: [],
  finish: 'refusal',
  stopSequence: null,
  thinkingTokens: 0,
  outputTokens: 0,
}

function writeText(request: GenerateRequest, seed: number): string {
  if (request.tools.length > 0) {
    const names = request.tools.map((tool) => tool.name).join(' and ')
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
