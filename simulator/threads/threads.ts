import type { Call } from '../call.ts'
import { invalid, missing, parseChatBody, requireModel, unplayedTool } from '../chat/chat-body.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import type { ToolDefinition } from '../generate.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { isOver, statusOf } from './run-state.ts'
import {
  type Assistant,
  assistantJson,
  type Message,
  messageJson,
  type Thread,
  threadJson,
} from './thread.ts'

const pageSizeMax = 100
const pageSizeDefault = 20

/** Assistants, threads and runs are a beta that a request has to ask for. */
export function requireBeta({ headers }: Call): void {
  if (/\bassistants=v2\b/.test(String(headers['openai-beta'] ?? ''))) return
  throw new Refusal(
    400,
    "You must provide the 'OpenAI-Beta' header to access the Assistants API. Please try again by setting the header 'OpenAI-Beta: assistants=v2'.",
    { code: 'invalid_beta' },
  )
}

export function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, { headers: chatHeaders(call.identity) })
}

export function secondsNow({ identity }: Call): number {
  return Math.floor(identity.now().getTime() / 1000)
}

/** POST /v1/assistants */
export function createAssistant(call: Call): Reply {
  requireBeta(call)
  const body = parseChatBody(call)
  const model = requireModel(body['model'], 'v1/assistants', ['chat'])
  readTools(body['tools'])
  const assistant: Assistant = {
    id: `asst_${call.identity.base62(24)}`,
    createdAt: secondsNow(call),
    echo: {
      name: body['name'] ?? null,
      description: body['description'] ?? null,
      model: model.id,
      instructions: body['instructions'] ?? null,
      tools: body['tools'] ?? [],
      top_p: body['top_p'] ?? 1,
      temperature: body['temperature'] ?? 1,
      reasoning_effort: null,
      tool_resources: {},
      metadata: body['metadata'] ?? {},
      response_format: body['response_format'] ?? 'auto',
    },
  }
  call.memory.threads.assistants.set(assistant.id, assistant, call.body.length)
  return reply(call, assistantJson(assistant))
}

/** GET /v1/assistants/{id} */
export function getAssistant(call: Call): Reply {
  requireBeta(call)
  return reply(call, assistantJson(requireAssistant(call, call.params[0])))
}

/** DELETE /v1/assistants/{id} */
export function deleteAssistant(call: Call): Reply {
  requireBeta(call)
  const { id } = requireAssistant(call, call.params[0])
  call.memory.threads.assistants.delete(id)
  return reply(call, { id, object: 'assistant.deleted', deleted: true })
}

/** POST /v1/threads */
export function createThread(call: Call): Reply {
  requireBeta(call)
  return reply(call, threadJson(newThread(call, call.body.length === 0 ? {} : parseChatBody(call))))
}

export function newThread(call: Call, body: JsonObject): Thread {
  const thread: Thread = {
    id: `thread_${call.identity.base62(24)}`,
    createdAt: secondsNow(call),
    metadata: body['metadata'] ?? {},
    messages: [],
    bytes: 0,
  }
  for (const message of asArray(body['messages'])) thread.messages.push(newMessage(call, message))
  call.memory.threads.keep(thread, call.body.length)
  return thread
}

export function newMessage(call: Call, message: unknown): Message {
  const { role, content } = isObject(message) ? message : {}
  if (role !== 'user' && role !== 'assistant') throw invalid('role', "'user' or 'assistant'")
  if (content === undefined) throw missing('content')
  return {
    id: `msg_${call.identity.base62(24)}`,
    createdAt: secondsNow(call),
    role,
    text: typeof content === 'string' ? content : asArray(content).map(textOf).join(' '),
    run: null,
  }
}

function textOf(part: unknown): string {
  return isObject(part) ? asText(part['text']) : ''
}

/** GET /v1/threads/{id} */
export function getThread(call: Call): Reply {
  requireBeta(call)
  return reply(call, threadJson(requireThread(call)))
}

/** DELETE /v1/threads/{id}: deletes the thread's runs too. */
export function deleteThread(call: Call): Reply {
  requireBeta(call)
  const { id } = requireThread(call)
  for (const run of call.memory.threads.runsOf(id)) call.memory.threads.runs.delete(run.id)
  call.memory.threads.threads.delete(id)
  return reply(call, { id, object: 'thread.deleted', deleted: true })
}

/** POST /v1/threads/{id}/messages */
export function addMessage(call: Call): Reply {
  requireBeta(call)
  const thread = requireThread(call)
  refuseWhileActive(call, thread, 'add messages to')
  const message = newMessage(call, parseChatBody(call))
  thread.messages.push(message)
  call.memory.threads.keep(thread, call.body.length)
  return reply(call, messageJson(thread, message))
}

export function refuseWhileActive(call: Call, { id }: Thread, what: string): void {
  const active = call.memory.threads.runsOf(id).find((run) => !isOver(statusOf(run, call.clock)))
  if (active === undefined) return
  throw new Refusal(400, `Can't ${what} ${id} while a run ${active.id} is active.`)
}

/** GET /v1/threads/{id}/messages */
export function listMessages(call: Call): Reply {
  requireBeta(call)
  const thread = requireThread(call)
  for (const run of call.memory.threads.runsOf(thread.id)) statusOf(run, call.clock)
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `Invalid 'limit': expected 1 to ${pageSizeMax}.`, { param: 'limit' })
  }
  const runId = call.query.get('run_id')
  const wanted = thread.messages.filter(({ run }) => runId === null || run?.id === runId)
  const ordered = call.query.get('order') === 'asc' ? wanted : wanted.toReversed()
  const { page, hasMore } = pageAfter(ordered, call.query.get('after'), limit)
  const data = page.map((message) => messageJson(thread, message))
  const ends = { first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  return reply(call, { object: 'list', data, ...ends, has_more: hasMore })
}

export function requireAssistant(call: Call, id: unknown): Assistant {
  const assistant = call.memory.threads.assistants.get(asText(id))
  if (assistant === undefined) throw new Refusal(404, `No assistant found with id '${asText(id)}'.`)
  return assistant
}

export function requireThread(call: Call): Thread {
  const id = call.params[0] ?? ''
  const thread = call.memory.threads.threads.get(id)
  if (thread === undefined) throw new Refusal(404, `No thread found with id '${id}'.`)
  return thread
}

const played = ['function', 'code_interpreter', 'file_search']

/** Functions are called; the tools that upstream runs are taken, and stay unused. */
export function readTools(tools: unknown): ToolDefinition[] {
  const definitions: ToolDefinition[] = []
  for (const [index, tool] of asArray(tools).entries()) {
    const kind = isObject(tool) ? asText(tool['type']) : ''
    if (!played.includes(kind)) throw unplayedTool(`tools[${index}].type`, kind, played)
    if (kind !== 'function') continue
    const definition = isObject(tool) ? tool['function'] : undefined
    const name = isObject(definition) ? asText(definition['name']) : ''
    if (!isObject(definition) || name === '') throw missing(`tools[${index}].function.name`)
    definitions.push({ name, kind, schema: definition['parameters'] })
  }
  return definitions
}
