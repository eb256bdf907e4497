import { cancelBatch, endOf, hasEnded, newBatch, runRequest, toJsonl } from '../batches.ts'
import type { Call } from '../call.ts'
import { pageOf } from '../call.ts'
import { asArray, asText, isObject, type JsonObject } from '../json.ts'
import { batchRequestsMax } from '../limits.ts'
import type { Batch } from '../memory.ts'
import { Refusal } from '../refusal.ts'
import { bytesReply, jsonReply, type Reply } from '../reply.ts'
import { createMessage } from './create-message.ts'
import { parseMessagesBody, requireVersion } from './messages-request.ts'
import { messagesErrorJson } from './messages-wire.ts'

const dayMs = 86_400_000
const noCounts = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 }

interface BatchRequest {
  readonly customId: string
  readonly params: JsonObject
}

/** POST /v1/messages/batches */
export function createMessageBatch(call: Call): Reply {
  const requests = asArray(parseMessagesBody(call)['requests']).map(readRequest)
  if (requests.length === 0 || requests.length > batchRequestsMax) {
    throw new Refusal(400, `requests: the simulator takes 1 to ${batchRequestsMax} of them`)
  }
  if (new Set(requests.map(({ customId }) => customId)).size < requests.length) {
    throw new Refusal(400, 'requests: custom_id must be unique in a batch')
  }
  const later: Call = { ...call, body: Buffer.alloc(0), behaviours: { tier: 'batch', ...call.behaviours } }
  const id = `msgbatch_01${call.identity.base62(22)}`
  const batch = newBatch(call, id, requests.length, {}, (count) => run(later, requests, count))
  call.memory.messageBatches.set(id, batch)
  return jsonReply(batchJson(call, batch, false))
}

/** GET /v1/messages/batches */
export function listMessageBatches(call: Call): Reply {
  requireVersion(call)
  const { page, ends } = pageOf(call, call.memory.messageBatches.newestFirst())
  return jsonReply({ data: page.map((batch) => batchJson(call, batch)), ...ends })
}

/** GET /v1/messages/batches/{id} */
export function getMessageBatch(call: Call): Reply {
  return jsonReply(batchJson(call, requireBatch(call)))
}

/** POST /v1/messages/batches/{id}/cancel */
export function cancelMessageBatch(call: Call): Reply {
  const batch = requireBatch(call)
  cancelBatch(batch, call.clock)
  return jsonReply(batchJson(call, batch))
}

/** DELETE /v1/messages/batches/{id} */
export function deleteMessageBatch(call: Call): Reply {
  const { id } = requireBatch(call)
  call.memory.messageBatches.delete(id)
  return jsonReply({ id, type: 'message_batch_deleted' })
}

/** GET /v1/messages/batches/{id}/results */
export function getMessageBatchResults(call: Call): Reply {
  const batch = requireBatch(call)
  if (!hasEnded(batch, call.clock)) throw new Refusal(404, `Message Batch ${batch.id} has no results yet.`)
  return bytesReply('application/x-jsonl', toJsonl(batch.outcome?.['results'] as object[]))
}

function readRequest(request: unknown, index: number): BatchRequest {
  const { custom_id, params } = isObject(request) ? request : ({} as JsonObject)
  if (!/^[\w-]{1,64}$/.test(asText(custom_id))) {
    throw new Refusal(400, `requests.${index}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
  }
  if (!isObject(params)) throw new Refusal(400, `requests.${index}.params: Field required`)
  return { customId: asText(custom_id), params }
}

/** Answers the first `count` requests, and counts the results of all. */
function run(call: Call, requests: readonly BatchRequest[], count: number): JsonObject {
  const counts = { ...noCounts }
  const results = requests.map(({ customId, params }, index) => {
    const result = index < count ? resultOf(call, params) : ({ type: 'canceled' } as const)
    counts[result.type] += 1
    return { custom_id: customId, result }
  })
  return { counts, results }
}

function resultOf(call: Call, params: JsonObject): { type: 'succeeded' | 'errored' } & JsonObject {
  const { status, json } = runRequest(call, createMessage, params, messagesErrorJson)
  return status === 200 ? { type: 'succeeded', message: json } : { type: 'errored', error: json }
}

function requireBatch(call: Call): Batch {
  requireVersion(call)
  const batch = call.memory.messageBatches.get(call.param)
  if (batch === undefined) throw new Refusal(404, `Message Batch ${call.param} not found.`)
  return batch
}

/** The batch as it is now; a new batch is in progress, however fast its work goes. */
function batchJson(call: Call, batch: Batch, mayHaveEnded = true): JsonObject {
  const isEnded = mayHaveEnded && hasEnded(batch, call.clock)
  const createdMs = batch.createdAt.getTime()
  const { cancelledAfterMs } = batch
  const isCancelled = cancelledAfterMs !== null
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: isEnded ? 'ended' : isCancelled ? 'canceling' : 'in_progress',
    // As upstream does: every request counts as processing until the batch as a whole has ended.
    request_counts: isEnded ? batch.outcome?.['counts'] : { ...noCounts, processing: batch.size },
    created_at: batch.createdAt.toISOString(),
    expires_at: new Date(createdMs + dayMs).toISOString(),
    ended_at: isEnded ? endOf(batch).toISOString() : null,
    archived_at: null,
    cancel_initiated_at: isCancelled ? new Date(createdMs + cancelledAfterMs).toISOString() : null,
    // The URL of the results is absolute, as upstream's is, and names upstream itself.
    results_url: isEnded
      ? `http://${call.headers.host ?? 'simulator'}/v1/messages/batches/${batch.id}/results`
      : null,
  }
}
