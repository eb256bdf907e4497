import { type Batch, cancelBatch, secondsAt, stageOf } from '../batch-store.ts'
import type { Call } from '../call.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { batchAnswersBytesMax, batchRequestsMax } from '../limits.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, jsonReply, type Reply } from '../reply.ts'
import { runRequest } from '../run-request.ts'
import { createMessage } from './create-message.ts'
import { messagesErrorReply } from './messages-error.ts'
import { messagesHeaders, newMessagesRequestId } from './messages-headers.ts'
import { parseMessagesBody, requireVersion } from './validate-messages.ts'

const pageSizeDefault = 20
const pageSizeMax = 1_000
const dayMs = 86_400_000
const nothingDone = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 }

/** POST /v1/messages/batches */
export function createMessageBatch(call: Call): Reply {
  requireVersion(call)
  const { requests } = parseMessagesBody(call) as { requests?: unknown }
  if (requests === undefined) throw new Refusal(400, 'requests: Field required')
  const list = asArray(requests).map(readRequest)
  if (list.length === 0 || list.length > batchRequestsMax) {
    throw new Refusal(400, `requests: the simulator takes 1 to ${batchRequestsMax} of them`)
  }
  const ids = new Set(list.map((request) => request.customId))
  if (ids.size < list.length) throw new Refusal(400, 'requests: custom_id must be unique in a batch')
  // The batch outlives this call, whose body would stay in memory with it.
  const later: Call = { ...call, body: Buffer.alloc(0), behaviours: { tier: 'batch', ...call.behaviours } }
  const batch: Batch = {
    id: `msgbatch_01${call.identity.base62(22)}`,
    createdAt: call.identity.now(),
    startedMs: call.clock.nowMs(),
    size: list.length,
    echo: {},
    problems: [],
    cancelledAfterMs: null,
    workOff: (count) => workOff(later, batch.id, list.splice(0), count),
    outcome: null,
  }
  call.memory.batches.messages.add(batch, call.body.length)
  return reply(call, batchJson(call, batch, 'new'))
}

/** GET /v1/messages/batches */
export function listMessageBatches(call: Call): Reply {
  requireVersion(call)
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `limit: Input should be between 1 and ${pageSizeMax}`)
  }
  const batches = call.memory.batches.messages.newestFirst()
  const before = call.query.get('before_id')
  // A page that ends before an id is the page that follows the id in the opposite order.
  const ordered = before === null ? batches : batches.reverse()
  const found = pageAfter(ordered, before ?? call.query.get('after_id'), limit)
  const page = before === null ? found.page : found.page.reverse()
  return reply(call, {
    data: page.map((batch) => batchJson(call, batch)),
    has_more: found.hasMore,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  })
}

/** GET /v1/messages/batches/{id} */
export function getMessageBatch(call: Call): Reply {
  return reply(call, batchJson(call, requireBatch(call)))
}

/** POST /v1/messages/batches/{id}/cancel */
export function cancelMessageBatch(call: Call): Reply {
  const batch = requireBatch(call)
  cancelBatch(batch, call.clock)
  return reply(call, batchJson(call, batch))
}

/** DELETE /v1/messages/batches/{id} */
export function deleteMessageBatch(call: Call): Reply {
  const batch = requireBatch(call)
  if (stageOf(batch, call.clock) !== 'ended') {
    throw new Refusal(400, `Message Batch ${batch.id} is still processing: cancel it first.`)
  }
  call.memory.batches.messages.remove(batch.id)
  return reply(call, { id: batch.id, type: 'message_batch_deleted' })
}

/** GET /v1/messages/batches/{id}/results */
export function getMessageBatchResults(call: Call): Reply {
  const batch = requireBatch(call)
  const isEnded = stageOf(batch, call.clock) === 'ended'
  const body = call.memory.batches.messages.answers.get(batch.id)
  if (!isEnded || body === undefined) {
    throw new Refusal(404, `Message Batch ${batch.id} has no results ${isEnded ? 'any more' : 'yet'}.`)
  }
  const headers = messagesHeaders(call.identity, newMessagesRequestId(call.identity))
  return bytesReply('application/x-jsonl', body, headers)
}

interface BatchRequest {
  readonly customId: string
  readonly params: unknown
}

function readRequest(request: unknown, index: number): BatchRequest {
  const { custom_id: customId, params } = (isObject(request) ? request : {}) as {
    custom_id?: unknown
    params?: unknown
  }
  if (!/^[\w-]{1,64}$/.test(asText(customId))) {
    throw new Refusal(400, `requests.${index}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
  }
  if (!isObject(params)) throw new Refusal(400, `requests.${index}.params: Field required`)
  return { customId: asText(customId), params }
}

/** Answers the first `count` requests, writes down all results, and counts them. */
function workOff(call: Call, id: string, requests: readonly BatchRequest[], count: number): JsonObject {
  const counts = { ...nothingDone }
  const lines: Buffer[] = []
  let bytes = 0
  for (const [index, request] of requests.entries()) {
    const result =
      index >= count ? canceled : bytes > batchAnswersBytesMax ? expired : resultOf(call, request)
    counts[result.type] += 1
    const line = Buffer.from(`${JSON.stringify({ custom_id: request.customId, result })}\n`)
    bytes += line.length
    lines.push(line)
  }
  call.memory.batches.messages.answers.set(id, Buffer.concat(lines), bytes)
  return counts
}

const canceled = { type: 'canceled' } as const
const expired = { type: 'expired' } as const

function resultOf(call: Call, { params }: BatchRequest): { type: 'succeeded' | 'errored' } & JsonObject {
  const { status, json } = runRequest(call, createMessage, params, messagesErrorReply)
  return status === 200 ? { type: 'succeeded', message: json } : { type: 'errored', error: json }
}

function requireBatch(call: Call): Batch {
  requireVersion(call)
  const id = call.params[0] ?? ''
  const batch = call.memory.batches.messages.find(id)
  if (batch === undefined) throw new Refusal(404, `Message Batch ${id} not found.`)
  return batch
}

function batchJson(call: Call, batch: Batch, when: 'new' | 'now' = 'now'): JsonObject {
  const isEnded = when === 'now' && stageOf(batch, call.clock) === 'ended'
  const cancelledAfterMs = batch.cancelledAfterMs
  const cancelledAt =
    cancelledAfterMs === null ? null : new Date(batch.createdAt.getTime() + cancelledAfterMs).toISOString()
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: isEnded ? 'ended' : cancelledAt === null ? 'in_progress' : 'canceling',
    // As upstream does: every request counts as processing until the batch as a whole has ended.
    request_counts: isEnded ? batch.outcome : { ...nothingDone, processing: batch.size },
    created_at: batch.createdAt.toISOString(),
    expires_at: new Date(batch.createdAt.getTime() + dayMs).toISOString(),
    ended_at: isEnded ? new Date(secondsAt(batch, 'ended') * 1000).toISOString() : null,
    archived_at: null,
    cancel_initiated_at: cancelledAt,
    // The URL of the results is absolute, as upstream's is, and names upstream itself.
    results_url: isEnded
      ? `http://${call.headers.host ?? 'simulator'}/v1/messages/batches/${batch.id}/results`
      : null,
  }
}

function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, {
    headers: messagesHeaders(call.identity, newMessagesRequestId(call.identity)),
  })
}
