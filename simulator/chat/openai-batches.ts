import { cancelBatch, endOf, hasEnded, newBatch, runRequest, toJsonl } from '../batches.ts'
import { type Call, type Handler, pageOf } from '../call.ts'
import { asText, isObject, type JsonObject, parseJson } from '../json.ts'
import { batchRequestsMax } from '../limits.ts'
import type { Batch } from '../memory.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { createResponse } from '../responses/create-response.ts'
import { chatErrorJson } from './chat-wire.ts'
import { createChat } from './create-chat.ts'
import { createEmbeddings } from './create-embeddings.ts'
import { createImage } from './create-image.ts'
import { storeFile } from './openai-files.ts'
import { invalid, missing, parseChatBody } from './read-fields.ts'

const daySeconds = 86_400

const endpoints: ReadonlyMap<string, Handler> = new Map([
  ['/v1/chat/completions', createChat],
  ['/v1/responses', createResponse],
  ['/v1/embeddings', createEmbeddings],
  ['/v1/images/generations', createImage],
])

interface Line {
  readonly customId: string
  readonly body: JsonObject
}

/** POST /v1/batches */
export function createBatch(call: Call): Reply {
  const body = parseChatBody(call)
  const { completion_window, input_file_id, metadata = null } = body
  const endpoint = asText(body['endpoint'])
  if (endpoint === '') throw missing('endpoint')
  if (completion_window !== '24h') throw invalid('completion_window', "'24h'")
  const file = call.memory.files.get(asText(input_file_id))
  if (file?.purpose !== 'batch') throw invalid('input_file_id', "the id of a file of purpose 'batch'")
  const lines = file.content
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const read = lines.slice(0, batchRequestsMax).map((line) => readLine(line, endpoint))
  const requests = read.filter((line) => 'body' in line)
  const problems = read.flatMap((line, index) => ('code' in line ? [{ ...line, line: index + 1 }] : []))
  const later: Call = { ...call, body: Buffer.alloc(0) }
  const id = `batch_${call.identity.hex(32)}`
  const echo = { endpoint, input_file_id, completion_window, metadata }
  const batch = newBatch(call, id, lines.length, echo, (count) =>
    problems.length > 0 ? { problems } : run(later, endpoint, requests, count),
  )
  call.memory.chatBatches.set(id, batch)
  return jsonReply(batchJson(call, batch, false))
}

/** GET /v1/batches */
export function listBatches(call: Call): Reply {
  const { page, ends } = pageOf(call, call.memory.chatBatches.newestFirst())
  return jsonReply({ object: 'list', data: page.map((batch) => batchJson(call, batch)), ...ends })
}

/** GET /v1/batches/{id} */
export function getBatch(call: Call): Reply {
  return jsonReply(batchJson(call, requireBatch(call)))
}

/** POST /v1/batches/{id}/cancel */
export function cancelOpenaiBatch(call: Call): Reply {
  const batch = requireBatch(call)
  if (hasEnded(batch, call.clock)) throw new Refusal(409, 'Cannot cancel a batch that has ended.')
  cancelBatch(batch, call.clock)
  return jsonReply(batchJson(call, batch))
}

function readLine(line: string, endpoint: string): Line | { code: string; message: string; param: null } {
  const parsed = parseJson(line)
  const { custom_id: customId, url, method, body } = isObject(parsed) ? parsed : ({} as JsonObject)
  if (typeof customId !== 'string' || method !== 'POST' || !isObject(body)) {
    const message = 'Expected an object with custom_id, method, url and body.'
    return { code: 'invalid_json_line', message, param: null }
  }
  if (url === endpoint) return { customId, body }
  return { code: 'mismatched_url', message: `The url is not the batch's endpoint, ${endpoint}.`, param: null }
}

/** Answers the first `count` requests; the answers that went well and the other answers make a file each. */
function run(call: Call, endpoint: string, requests: readonly Line[], count: number): JsonObject {
  const { identity } = call
  const handle = endpoints.get(endpoint) ?? unserved
  const answers: object[] = []
  const errors: object[] = []
  for (const { customId, body: asked } of requests.slice(0, count)) {
    const errorJson = (refusal: Refusal): JsonObject => ({ error: chatErrorJson(refusal) })
    const { status, json: body } = runRequest(call, handle, asked, errorJson)
    const response = { status_code: status, request_id: `req_${identity.hex(32)}`, body }
    const line = { id: `batch_req_${identity.hex(32)}`, custom_id: customId, response, error: null }
    ;(status === 200 ? answers : errors).push(line)
  }
  const store = (lines: readonly object[]): string | null => {
    if (lines.length === 0) return null
    return storeFile(call, 'batch_output', 'batch_output.jsonl', toJsonl(lines)).id
  }
  return {
    output_file_id: store(answers),
    error_file_id: store(errors),
    request_counts: { total: requests.length, completed: answers.length, failed: errors.length },
  }
}

function unserved(): never {
  throw new Refusal(400, `The simulator runs batches on ${[...endpoints.keys()].join(', ')}.`)
}

function requireBatch(call: Call): Batch {
  const batch = call.memory.chatBatches.get(call.param)
  if (batch === undefined) throw new Refusal(404, `No batch found with id '${call.param}'.`, { param: 'id' })
  return batch
}

/** The batch as it is now; a new batch is being validated, however fast its work goes. */
function batchJson(call: Call, batch: Batch, mayHaveEnded = true): JsonObject {
  const isEnded = mayHaveEnded && hasEnded(batch, call.clock)
  const isCancelled = batch.cancelledAfterMs !== null
  const { problems, ...outcome } = isEnded ? (batch.outcome ?? {}) : ({} as JsonObject)
  const going = isCancelled ? 'cancelling' : mayHaveEnded ? 'in_progress' : 'validating'
  const ended = problems !== undefined ? 'failed' : isCancelled ? 'cancelled' : 'completed'
  const status = isEnded ? ended : going
  const created = Math.floor(batch.createdAt.getTime() / 1000)
  const over = Math.floor(endOf(batch).getTime() / 1000)
  const at = (...reached: readonly string[]): number | null => (reached.includes(status) ? over : null)
  return {
    id: batch.id,
    object: 'batch',
    ...batch.echo,
    errors: problems === undefined ? null : { object: 'list', data: problems },
    status,
    output_file_id: null,
    error_file_id: null,
    created_at: created,
    in_progress_at: status === 'validating' ? null : created,
    expires_at: created + daySeconds,
    finalizing_at: at('completed'),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: null,
    cancelling_at: at('cancelling', 'cancelled'),
    cancelled_at: at('cancelled'),
    request_counts: { total: batch.size, completed: 0, failed: 0 },
    ...outcome,
  }
}
