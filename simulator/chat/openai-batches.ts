import { type Batch, cancelBatch, secondsAt, stageOf } from '../batch-store.ts'
import type { Call, Handler } from '../call.ts'
import { asText, isObject, type JsonObject } from '../json.ts'
import { batchAnswersBytesMax, batchRequestsMax } from '../limits.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { createResponse } from '../responses/create-response.ts'
import { runRequest } from '../run-request.ts'
import { addUsage, type BatchUsage, batchUsageJson, noUsage } from './batch-usage.ts'
import { invalid, missing, parseChatBody } from './chat-body.ts'
import { chatErrorReply } from './chat-error.ts'
import { chatHeaders } from './chat-headers.ts'
import { createChat } from './create-chat.ts'
import { createCompletion } from './create-completion.ts'
import { createEmbeddings } from './create-embeddings.ts'
import { createImage } from './create-image.ts'
import { createModeration } from './create-moderation.ts'

const pageSizeMax = 100
const pageSizeDefault = 20
const daySeconds = 86_400

const endpoints: ReadonlyMap<string, Handler> = new Map([
  ['/v1/chat/completions', createChat],
  ['/v1/responses', createResponse],
  ['/v1/embeddings', createEmbeddings],
  ['/v1/completions', createCompletion],
  ['/v1/moderations', createModeration],
  ['/v1/images/generations', createImage],
])

/** POST /v1/batches */
export function createBatch(call: Call): Reply {
  const body: JsonObject = parseChatBody(call)
  const endpoint = asText(body['endpoint'])
  const handle = endpoints.get(endpoint)
  if (body['endpoint'] === undefined) throw missing('endpoint')
  if (handle === undefined) {
    const played = [...endpoints.keys()].join(', ')
    throw new Refusal(400, `The simulator runs no batches on '${endpoint}', only on ${played}.`, {
      param: 'endpoint',
      code: 'invalid_value',
    })
  }
  if (body['completion_window'] !== '24h') throw invalid('completion_window', "'24h'")
  const file = call.memory.files.chat.find(asText(body['input_file_id']))
  if (file === undefined || file.purpose !== 'batch') {
    throw new Refusal(400, `No file of purpose 'batch' with the id '${asText(body['input_file_id'])}'.`, {
      param: 'input_file_id',
    })
  }
  const { requests, problems } = readLines(file.content.toString('utf8'), endpoint)
  const later: Call = { ...call, body: Buffer.alloc(0) }
  const batch: Batch = {
    id: `batch_${call.identity.hex(32)}`,
    createdAt: call.identity.now(),
    startedMs: call.clock.nowMs(),
    size: requests.length,
    cancelledAfterMs: null,
    workOff: (count) => workOff(later, handle, requests.splice(0), problems.length > 0 ? 0 : count),
    outcome: null,
    echo: { endpoint, input_file_id: file.id, completion_window: '24h', metadata: body['metadata'] ?? null },
    problems,
  }
  call.memory.batches.chat.add(batch, file.content.length)
  return reply(call, batchJson(call, batch, 'new'))
}

/** GET /v1/batches */
export function listBatches(call: Call): Reply {
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `Invalid 'limit': expected 1 to ${pageSizeMax}.`, { param: 'limit' })
  }
  const batches = call.memory.batches.chat.newestFirst()
  const { page, hasMore } = pageAfter(batches, call.query.get('after'), limit)
  return reply(call, {
    object: 'list',
    data: page.map((batch) => batchJson(call, batch)),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: hasMore,
  })
}

/** GET /v1/batches/{id} */
export function getBatch(call: Call): Reply {
  return reply(call, batchJson(call, requireBatch(call)))
}

/** POST /v1/batches/{id}/cancel */
export function cancelOpenaiBatch(call: Call): Reply {
  const batch = requireBatch(call)
  const { status } = batchJson(call, batch)
  if (status === 'completed' || status === 'failed') {
    throw new Refusal(409, `Cannot cancel a batch with status '${status}'.`)
  }
  cancelBatch(batch, call.clock)
  return reply(call, batchJson(call, batch))
}

interface Line {
  readonly customId: string
  readonly body: unknown
}

function readLines(text: string, endpoint: string): { requests: Line[]; problems: JsonObject[] } {
  const requests: Line[] = []
  const problems: JsonObject[] = []
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const complain = (line: number, code: string, message: string): void => {
    problems.push({ code, message, param: null, line })
  }
  if (lines.length === 0) complain(1, 'empty_file', 'The input file has no requests.')
  if (lines.length > batchRequestsMax) {
    complain(batchRequestsMax, 'too_many_tasks', `The simulator takes ${batchRequestsMax} requests.`)
  }
  for (const [index, line] of lines.slice(0, batchRequestsMax).entries()) {
    const { custom_id: customId, url, method, body } = parseLine(line)
    if (typeof customId !== 'string' || method !== 'POST' || !isObject(body)) {
      complain(index + 1, 'invalid_json_line', 'Expected an object with custom_id, method, url and body.')
    } else if (url !== endpoint) {
      complain(index + 1, 'mismatched_url', `The url is not the batch's endpoint, ${endpoint}.`)
    } else requests.push({ customId, body })
  }
  return { requests, problems: problems.slice(0, pageSizeMax) }
}

function parseLine(line: string): { custom_id?: unknown; url?: unknown; method?: unknown; body?: unknown } {
  try {
    const parsed: unknown = JSON.parse(line)
    return isObject(parsed) ? parsed : {}
  } catch {
    return {}
  }
}

/** Answers the first `count` requests; the answers that went well and the other answers make a file each. */
function workOff(call: Call, handle: Handler, lines: readonly Line[], count: number): JsonObject {
  const { identity } = call
  const answers: Buffer[] = []
  const errors: Buffer[] = []
  let bytes = 0
  let usage: BatchUsage = noUsage
  const models = new Set<string>()
  for (const line of lines.slice(0, count)) {
    const frame = { id: `batch_req_${identity.hex(32)}`, custom_id: line.customId }
    if (bytes > batchAnswersBytesMax) {
      errors.push(toLine({ ...frame, response: null, error: expired }))
      continue
    }
    const { status, json } = runRequest(call, handle, line.body, chatErrorReply)
    const response = { status_code: status, request_id: `req_${identity.hex(32)}`, body: json }
    const written = toLine({ ...frame, response, error: null })
    bytes += written.length
    if (status !== 200) {
      errors.push(written)
      continue
    }
    answers.push(written)
    usage = addUsage(usage, isObject(json) ? json['usage'] : undefined)
    models.add(asText(isObject(json) ? json['model'] : ''))
  }
  const [model] = models
  return {
    output_file_id: keepFile(call, 'batch_output', answers),
    error_file_id: keepFile(call, 'batch_error', errors),
    request_counts: { total: lines.length, completed: answers.length, failed: errors.length },
    usage: batchUsageJson(usage),
    ...(models.size === 1 && model !== '' ? { model } : {}),
  }
}

const expired = { code: 'batch_expired', message: 'This request could not be executed in time.' }

function toLine(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function keepFile(call: Call, name: string, lines: readonly Buffer[]): string | null {
  if (lines.length === 0) return null
  const id = `file-${call.identity.base62(22)}`
  call.memory.files.chat.add({
    id,
    filename: `${id}_${name}.jsonl`,
    contentType: 'application/jsonl',
    purpose: 'batch_output',
    createdAt: call.identity.now(),
    content: Buffer.concat(lines),
  })
  return id
}

function requireBatch(call: Call): Batch {
  const id = call.params[0] ?? ''
  const batch = call.memory.batches.chat.find(id)
  if (batch === undefined) throw new Refusal(404, `No batch found with id '${id}'.`, { param: 'id' })
  return batch
}

function batchJson(call: Call, batch: Batch, when: 'new' | 'now' = 'now'): JsonObject {
  const stage = when === 'new' ? 'validating' : stageOf(batch, call.clock)
  const isFailed = batch.problems.length > 0 && stage !== 'validating'
  const isCancelled = batch.cancelledAfterMs !== null
  const isEnded = stage === 'ended' && !isFailed
  const status = {
    validating: isCancelled ? 'cancelling' : 'validating',
    working: 'in_progress',
    closing: isCancelled ? 'cancelling' : 'finalizing',
    ended: isCancelled ? 'cancelled' : 'completed',
  }[stage]
  const at = (isReached: boolean, moment: Parameters<typeof secondsAt>[1]): number | null =>
    isReached && !isFailed ? secondsAt(batch, moment) : null
  const isClosing = stage === 'closing' || stage === 'ended'
  return {
    id: batch.id,
    object: 'batch',
    ...batch.echo,
    errors: isFailed ? { object: 'list', data: batch.problems } : null,
    status: isFailed ? 'failed' : status,
    output_file_id: null,
    error_file_id: null,
    created_at: secondsAt(batch, 'validating'),
    in_progress_at: at(stage !== 'validating', 'working'),
    expires_at: secondsAt(batch, 'validating') + daySeconds,
    finalizing_at: at(isClosing && !isCancelled, 'closing'),
    completed_at: at(isEnded && !isCancelled, 'ended'),
    failed_at: isFailed ? secondsAt(batch, 'working') : null,
    expired_at: null,
    cancelling_at: at(isCancelled, 'closing'),
    cancelled_at: at(isEnded && isCancelled, 'ended'),
    request_counts: { total: stage === 'validating' ? 0 : batch.size, completed: 0, failed: 0 },
    ...(isEnded ? batch.outcome : {}),
  }
}

function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, { headers: chatHeaders(call.identity) })
}
