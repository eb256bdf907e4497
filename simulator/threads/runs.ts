import type { Call } from '../call.ts'
import { missing, parseChatBody, readBoolean, readToolWish, requireModel } from '../chat/chat-body.ts'
import { chatErrorFrame } from '../chat/chat-error.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { asArray, asText, isIntegerIn, isObject, type JsonObject } from '../json.ts'
import { Refusal } from '../refusal.ts'
import { eventsReply, type Reply } from '../reply.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { runJson, runNow, streamRun } from './run-json.ts'
import { cancel, goOn, isOver, type Run, startLeg, statusOf } from './run-state.ts'
import { type Thread, threadJson } from './thread.ts'
import {
  newMessage,
  newThread,
  readTools,
  refuseWhileActive,
  reply,
  requireAssistant,
  requireBeta,
  requireThread,
  secondsNow,
} from './threads.ts'

const limitMin = 256

/** POST /v1/threads/{id}/runs */
export function createRun(call: Call): Reply {
  requireBeta(call)
  const thread = requireThread(call)
  refuseWhileActive(call, thread, 'add a run to')
  return start(call, thread, parseChatBody(call), [])
}

/** POST /v1/threads/runs */
export function createThreadAndRun(call: Call): Reply {
  requireBeta(call)
  const body = parseChatBody(call)
  requireAssistant(call, body['assistant_id'])
  const thread = newThread(call, isObject(body['thread']) ? body['thread'] : {})
  return start(call, thread, body, [namedFrame('thread.created', threadJson(thread))])
}

function start(call: Call, thread: Thread, body: JsonObject, opening: readonly Frame[]): Reply {
  const assistant = requireAssistant(call, body['assistant_id'])
  const model = requireModel(body['model'] ?? assistant.echo['model'], 'v1/threads/runs', ['chat'])
  const isStream = readBoolean(body['stream'], 'stream')
  const tools = body['tools'] ?? assistant.echo['tools']
  const completionMax = readLimit(body, 'max_completion_tokens')
  const promptMax = readLimit(body, 'max_prompt_tokens')
  const { behaviours } = call
  for (const message of asArray(body['additional_messages'])) thread.messages.push(newMessage(call, message))
  const run = {
    id: `run_${call.identity.base62(24)}`,
    createdAt: secondsNow(call),
    thread,
    model,
    echo: {
      assistant_id: assistant.id,
      model: behaviours.model ?? model.id,
      instructions: body['instructions'] ?? assistant.echo['instructions'] ?? '',
      tools,
      metadata: body['metadata'] ?? {},
      temperature: body['temperature'] ?? 1,
      top_p: body['top_p'] ?? 1,
      max_completion_tokens: completionMax,
      max_prompt_tokens: promptMax,
      truncation_strategy: body['truncation_strategy'] ?? { type: 'auto', last_messages: null },
      response_format: body['response_format'] ?? 'auto',
      tool_choice: body['tool_choice'] ?? 'auto',
      parallel_tool_calls: body['parallel_tool_calls'] !== false,
    },
    tools: readTools(tools),
    toolWish: readToolWish(body['tool_choice']),
    turns: thread.messages.map(({ role, text }) => ({ role, content: text })),
    limits: { prompt: promptMax ?? Infinity, completion: completionMax ?? Infinity },
    tokensWanted: behaviours.tokens,
    callsDemanded: behaviours.call,
    fails: behaviours.refusal === true,
    newId: (prefix: string) => `${prefix}${call.identity.base62(24)}`,
    used: { prompt: 0, completion: 0 },
    cancelled: null,
    ended: null,
  }
  const started: Run = Object.assign(run, { leg: startLeg(run, call.clock) })
  call.memory.threads.runs.set(started.id, started, call.body.length)
  return isStream ? streamed(call, started, true, opening) : reply(call, runJson(started, 'queued'))
}

function streamed(call: Call, run: Run, isNew: boolean, opening: readonly Frame[]): Reply {
  const now = () => statusOf(run, call.clock)
  const frames = streamRun(run, call.behaviours, isNew, opening, now)
  return eventsReply(frames, chatErrorFrame, run.model.pace, chatHeaders(call.identity))
}

function readLimit(body: JsonObject, name: string): number | null {
  const limit = body[name] ?? null
  if (limit === null || isIntegerIn(limit, limitMin, Number.MAX_SAFE_INTEGER)) return limit
  const message = `Invalid '${name}': expected an integer of at least ${limitMin}.`
  throw new Refusal(400, message, { param: name, code: 'integer_below_min_value' })
}

/** GET /v1/threads/{id}/runs */
export function listRuns(call: Call): Reply {
  requireBeta(call)
  const runs = call.memory.threads.runsOf(requireThread(call).id).reverse()
  const data = runs.map((run) => runNow(run, call.clock, call.behaviours))
  const ends = { first_id: runs[0]?.id ?? null, last_id: runs.at(-1)?.id ?? null }
  return reply(call, { object: 'list', data, ...ends, has_more: false })
}

/** GET /v1/threads/{id}/runs/{id} */
export function getRun(call: Call): Reply {
  requireBeta(call)
  return reply(call, runNow(requireRun(call), call.clock, call.behaviours))
}

/** POST /v1/threads/{id}/runs/{id}/cancel */
export function cancelRun(call: Call): Reply {
  requireBeta(call)
  const run = requireRun(call)
  const status = statusOf(run, call.clock)
  if (isOver(status)) throw new Refusal(400, `Cannot cancel run with status '${status}'.`)
  cancel(run, call.clock)
  return reply(call, runJson(run, 'cancelling'))
}

/** POST /v1/threads/{id}/runs/{id}/submit_tool_outputs */
export function submitToolOutputs(call: Call): Reply {
  requireBeta(call)
  const run = requireRun(call)
  const body = parseChatBody(call)
  const status = statusOf(run, call.clock)
  if (status !== 'requires_action') {
    throw new Refusal(400, `Runs in status "${status}" do not accept tool outputs.`)
  }
  const given = asArray(body['tool_outputs']).filter(isObject)
  const outputs = run.leg.calls.map(({ id }) => {
    const output = given.find((each) => each['tool_call_id'] === id)
    if (output === undefined) throw missing('tool_outputs')
    return { role: 'tool', tool_call_id: id, content: asText(output['output']) }
  })
  goOn(run, outputs, call.clock)
  if (readBoolean(body['stream'], 'stream')) return streamed(call, run, false, [])
  return reply(call, runJson(run, 'queued'))
}

function requireRun(call: Call): Run {
  const thread = requireThread(call)
  const id = call.params[1] ?? ''
  const run = call.memory.threads.runs.get(id)
  if (run === undefined || run.thread !== thread) {
    throw new Refusal(404, `No run found with id '${id}'.`)
  }
  return run
}
