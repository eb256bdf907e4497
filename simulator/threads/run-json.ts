import type { Behaviours } from '../behaviours.ts'
import { type JsonObject, mergeJson } from '../json.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { countTokens, splitIntoDeltas, splitIntoPieces } from '../tokens.ts'
import { expiresMs, isOver, type Run, type RunStatus, statusOf, usageOf } from './run-state.ts'
import { messageJson } from './thread.ts'

export function runJson(run: Run, status: RunStatus, behaviours: Behaviours = {}): JsonObject {
  const at = (when: RunStatus): number | null => (status === when ? run.createdAt : null)
  const isActive = !isOver(status)
  return {
    id: run.id,
    object: 'thread.run',
    created_at: run.createdAt,
    thread_id: run.thread.id,
    ...run.echo,
    status,
    started_at: status === 'queued' ? null : run.createdAt,
    expires_at: isActive ? run.createdAt + expiresMs / 1000 : null,
    cancelled_at: at('cancelled'),
    failed_at: at('failed'),
    completed_at: at('completed'),
    required_action: status === 'requires_action' ? requiredAction(run) : null,
    last_error:
      status === 'failed' ? { code: 'server_error', message: 'Sorry, something went wrong.' } : null,
    incomplete_details: status === 'incomplete' ? { reason: 'max_completion_tokens' } : null,
    usage: isActive || behaviours.noUsage === true ? null : usageJson(run, behaviours),
  }
}

function usageJson(run: Run, behaviours: Behaviours): JsonObject {
  const { prompt, completion } = usageOf(run)
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
  return mergeJson(usage, behaviours.usage ?? {})
}

function requiredAction({ leg }: Run): JsonObject {
  const calls = leg.calls.map(({ id, name, argumentsJson }) => ({
    id,
    type: 'function',
    function: { name, arguments: argumentsJson },
  }))
  return { type: 'submit_tool_outputs', submit_tool_outputs: { tool_calls: calls } }
}

const piecesLength = 12

/** The events of one leg: until the run is over or waits for its tools. `isNew`: the run was made by this request. */
export function* streamRun(
  run: Run,
  behaviours: Behaviours,
  isNew: boolean,
  opening: readonly Frame[],
  now: () => RunStatus,
): Generator<Frame> {
  const { leg } = run
  const shown = (status: RunStatus): Frame =>
    namedFrame(`thread.run.${status}`, runJson(run, status, behaviours))
  yield* opening
  if (isNew) yield namedFrame('thread.run.created', runJson(run, 'queued'))
  yield shown('queued')
  yield shown('in_progress')
  if (!run.fails) yield* leg.calls.length > 0 ? callEvents(run) : messageEvents(run)
  leg.isSeen = true
  yield shown(now())
  yield { text: 'event: done\ndata: [DONE]\n\n', tokens: 0, isDelta: false }
}

function stepOf(run: Run, type: string, details: JsonObject, status: string): JsonObject {
  const { id, thread, createdAt, echo, leg } = run
  const usage = {
    prompt_tokens: leg.promptTokens,
    completion_tokens: leg.written.outputTokens,
    total_tokens: leg.promptTokens + leg.written.outputTokens,
  }
  return {
    id: `step_${leg.message.id.slice('msg_'.length)}`,
    object: 'thread.run.step',
    created_at: createdAt,
    run_id: id,
    assistant_id: echo['assistant_id'],
    thread_id: thread.id,
    type,
    status,
    cancelled_at: null,
    completed_at: status === 'completed' ? createdAt : null,
    expired_at: null,
    failed_at: null,
    last_error: null,
    metadata: null,
    step_details: { type, ...details },
    usage: status === 'completed' ? usage : null,
  }
}

function* messageEvents(run: Run): Generator<Frame> {
  const { thread, leg } = run
  const { message } = leg
  const details = { message_creation: { message_id: message.id } }
  const step = (status: string) => stepOf(run, 'message_creation', details, status)
  yield namedFrame('thread.run.step.created', step('in_progress'))
  yield namedFrame('thread.run.step.in_progress', step('in_progress'))
  yield namedFrame('thread.message.created', messageJson(thread, message, 'in_progress'))
  yield namedFrame('thread.message.in_progress', messageJson(thread, message, 'in_progress'))
  for (const value of splitIntoDeltas(message.text)) {
    const delta = { content: [{ index: 0, type: 'text', text: { value } }] }
    const event = { id: message.id, object: 'thread.message.delta', delta }
    yield namedFrame('thread.message.delta', event, countTokens(value), true)
  }
  const end = leg.written.finish === 'length' ? 'incomplete' : 'completed'
  yield namedFrame(`thread.message.${end}`, messageJson(thread, message, end))
  yield namedFrame('thread.run.step.completed', step('completed'))
}

function* callEvents(run: Run): Generator<Frame> {
  const none = stepOf(run, 'tool_calls', { tool_calls: [] }, 'in_progress')
  yield namedFrame('thread.run.step.created', none)
  yield namedFrame('thread.run.step.in_progress', none)
  for (const [index, { id, name, argumentsJson }] of run.leg.calls.entries()) {
    const delta = (call: JsonObject, tokens = 0): Frame => {
      const details = { type: 'tool_calls', tool_calls: [{ index, type: 'function', ...call }] }
      const event = { id: none['id'], object: 'thread.run.step.delta', delta: { step_details: details } }
      return namedFrame('thread.run.step.delta', event, tokens, tokens > 0)
    }
    yield delta({ id, function: { name, arguments: '', output: null } })
    for (const piece of splitIntoPieces(argumentsJson, piecesLength))
      yield delta({ function: { arguments: piece } }, countTokens(piece))
  }
}

/** The run as it stands. */
export function runNow(run: Run, clock: Parameters<typeof statusOf>[1], behaviours: Behaviours): JsonObject {
  return runJson(run, statusOf(run, clock), behaviours)
}
