import { readPrompt } from '../chat/chat-prompt.ts'
import { chooseTools, type ToolWish } from '../choose-tools.ts'
import { type Generated, generate, type ToolDefinition } from '../generate.ts'
import type { JsonObject } from '../json.ts'
import type { Model } from '../models.ts'
import { tokensMs } from '../pace.ts'
import type { WorkClock } from '../work-clock.ts'
import type { Message, Thread } from './thread.ts'

export type RunStatus =
  | 'queued'
  | 'in_progress'
  | 'requires_action'
  | 'cancelling'
  | 'cancelled'
  | 'failed'
  | 'completed'
  | 'incomplete'
  | 'expired'

/** A call of a function that the client has to run. */
interface FunctionCall {
  readonly id: string
  readonly name: string
  readonly argumentsJson: string
}

/** The part of a run that a model reads and writes before the run ends or waits for its tools. */
interface Leg {
  /** When the leg began, by the work clock. */
  readonly startedMs: number
  readonly promptTokens: number
  readonly written: Generated
  readonly calls: readonly FunctionCall[]
  readonly message: Message
  /** Whether a stream has shown the leg's end. */
  isSeen: boolean
}

export interface Run {
  readonly id: string
  readonly createdAt: number
  readonly thread: Thread
  readonly model: Model
  /** The members of the run object that the request and the assistant decide. */
  readonly echo: JsonObject
  readonly tools: readonly ToolDefinition[]
  readonly toolWish: ToolWish
  /** The turns that the model reads, tool calls and their outputs included. */
  readonly turns: unknown[]
  readonly limits: { readonly prompt: number; readonly completion: number }
  readonly tokensWanted: number | undefined
  readonly callsDemanded: readonly string[] | undefined
  readonly fails: boolean
  readonly newId: (prefix: string) => string
  leg: Leg
  /** Tokens that the legs before this one used. */
  used: { readonly prompt: number; readonly completion: number }
  /** When the run was cancelled, and how far its leg had come by then. */
  cancelled: { readonly atMs: number; readonly workedMs: number } | null
  /** The final status, set once the run is over. */
  ended: RunStatus | null
}

const queuedMs = 1_000
const cancellingMs = 500
export const expiresMs = 600_000

const over: ReadonlySet<RunStatus> = new Set(['cancelled', 'failed', 'completed', 'incomplete', 'expired'])

export function isOver(status: RunStatus): boolean {
  return over.has(status)
}

/** The next leg, by the turns that there are to read now. */
export function startLeg(run: Omit<Run, 'leg'>, clock: WorkClock): Leg {
  const prompt = readPrompt(run.turns, run.echo['tools'] as unknown[], String(run.echo['instructions'] ?? ''))
  const { model, toolWish } = run
  const written = generate({
    topic: prompt.topic,
    variant: model.snapshot,
    tokensWanted: run.tokensWanted,
    outputTokensMax: Math.min(model.outputTokensMax, run.limits.completion - run.used.completion),
    thinkingTokens: 0,
    stopSequences: [],
    schema: undefined,
    tools: chooseTools(run.tools, toolWish, prompt.topic, prompt.isToolResult, true, run.callsDemanded),
    saysWhyBeforeTools: false,
    refuses: false,
  })
  return {
    startedMs: clock.nowMs(),
    promptTokens: Math.min(prompt.tokens, run.limits.prompt - run.used.prompt),
    written,
    calls: written.toolCalls.map(({ tool, argumentsJson }) => ({
      id: run.newId('call_'),
      name: tool.name,
      argumentsJson,
    })),
    message: {
      id: run.newId('msg_'),
      createdAt: run.createdAt,
      role: 'assistant',
      text: written.text,
      run: { id: run.id, assistantId: run.echo['assistant_id'] },
    },
    isSeen: false,
  }
}

/** The status of a run now. The first look that finds the run completed or incomplete puts its answer into the thread. */
export function statusOf(run: Run, clock: WorkClock): RunStatus {
  if (run.ended !== null) return run.ended
  if (run.cancelled !== null) {
    return clock.elapsedMs(run.cancelled.atMs) < cancellingMs ? 'cancelling' : end(run, 'cancelled')
  }
  const { leg } = run
  const elapsedMs = clock.elapsedMs(leg.startedMs)
  const workedMs = elapsedMs - queuedMs
  if (!leg.isSeen && workedMs < 0) return 'queued'
  if (!leg.isSeen && workedMs < workMs(run)) return 'in_progress'
  if (run.fails) return end(run, 'failed')
  if (leg.written.finish === 'length') return end(run, 'incomplete')
  if (leg.calls.length === 0) return end(run, 'completed')
  // Running the tools is the client's work, for which endless hurry leaves no time: no run expires then.
  const isLate = Number.isFinite(elapsedMs) && elapsedMs > expiresMs
  return isLate ? end(run, 'expired') : 'requires_action'
}

function workMs({ model, leg }: Run): number {
  return model.pace.firstByteMs + tokensMs(model.pace, leg.written.outputTokens)
}

function end(run: Run, status: RunStatus): RunStatus {
  run.ended = status
  if (status === 'completed' || status === 'incomplete') run.thread.messages.push(run.leg.message)
  return status
}

/** The usage of all legs; a leg that was cancelled counts the tokens that were written by then. */
export function usageOf(run: Run): { readonly prompt: number; readonly completion: number } {
  const { used, leg, model, cancelled } = run
  const written = leg.written.outputTokens
  const writingMs = (cancelled?.workedMs ?? Infinity) - queuedMs - model.pace.firstByteMs
  const byThen = Math.max(0, Math.floor((writingMs * model.pace.tokensPerSecond) / 1000))
  const completion = run.fails ? 0 : Math.min(written, byThen)
  return { prompt: used.prompt + leg.promptTokens, completion: used.completion + completion }
}

export function cancel(run: Run, clock: WorkClock): void {
  run.cancelled ??= { atMs: clock.nowMs(), workedMs: clock.elapsedMs(run.leg.startedMs) }
}

/** Continues a run when the outputs of its tools are there: the model reads the outputs in the next leg. */
export function goOn(run: Run, outputs: readonly unknown[], clock: WorkClock): void {
  run.used = usageOf(run)
  const calls = run.leg.calls.map(({ id, name, argumentsJson }) => ({
    id,
    type: 'function',
    function: { name, arguments: argumentsJson },
  }))
  run.turns.push({ role: 'assistant', tool_calls: calls }, ...outputs)
  run.leg = startLeg(run, clock)
}
