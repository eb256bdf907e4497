import { createHash } from 'node:crypto'
import type { Call } from '../call.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { asText, isObject, type JsonObject } from '../json.ts'
import { pageAfter } from '../pages.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { requireStored } from './get-response.ts'

const pageSizeDefault = 20
const pageSizeMax = 100

/** GET /v1/responses/{id}/input_items: the items that the response was made from, the last item first. */
export function listInputItems(call: Call): Reply {
  const { plan, turns } = requireStored(call)
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `Invalid 'limit': expected 1 to ${pageSizeMax}.`, { param: 'limit' })
  }
  const items = turns.map((turn, index) => itemJson(turn, `${plan.id}/${index}`))
  const ordered = call.query.get('order') === 'asc' ? items : items.reverse()
  const { page, hasMore } = pageAfter(ordered, call.query.get('after'), limit)
  const list = {
    object: 'list',
    data: page,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: hasMore,
  }
  return jsonReply(200, list, { headers: chatHeaders(call.identity) })
}

/** An item as upstream keeps it: with an id, and with its text as a list of parts. */
function itemJson(turn: unknown, seed: string): JsonObject & { id: string } {
  const item: JsonObject = isObject(turn) ? turn : {}
  const id = asText(item['id']) || `msg_${createHash('sha256').update(seed).digest('hex').slice(0, 48)}`
  if (item['role'] === undefined) return { ...item, id }
  const { content } = item
  const type = item['role'] === 'assistant' ? 'output_text' : 'input_text'
  const parts = typeof content === 'string' ? [{ type, text: content }] : content
  return { type: 'message', status: 'completed', ...item, id, content: parts }
}
