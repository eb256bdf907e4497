import type { Call } from '../call.ts'
import { findModel, listModels, type Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { messagesHeaders, newMessagesRequestId } from './messages-headers.ts'
import { requireVersion } from './validate-messages.ts'

const pageSizeDefault = 20
const pageSizeMax = 1_000

/** GET /v1/models on the Messages surface, in pages. */
export function listClaudeModels(call: Call): Reply {
  requireVersion(call)
  const limit = Number(call.query.get('limit') ?? pageSizeDefault)
  if (!Number.isInteger(limit) || limit < 1 || limit > pageSizeMax) {
    throw new Refusal(400, `limit: Input should be between 1 and ${pageSizeMax}`)
  }
  const all = listModels('messages')
  const after = indexAfter(all, call.query.get('after_id'))
  const before = call.query.get('before_id')
  const end = before === null ? all.length : Math.max(0, indexAfter(all, before) - 1)
  const start = before === null ? after : Math.max(0, end - limit)
  const page = all.slice(start, Math.min(end, start + limit))
  return reply(call, {
    data: page.map((model) => modelJson(model, model.snapshot)),
    has_more: before === null ? start + limit < all.length : start > 0,
    first_id: page[0]?.snapshot ?? null,
    last_id: page.at(-1)?.snapshot ?? null,
  })
}

/** GET /v1/models/{id} on the Messages surface */
export function getClaudeModel(call: Call): Reply {
  requireVersion(call)
  const id = call.params[0] ?? ''
  const model = findModel('messages', id)
  if (model === undefined) throw new Refusal(404, `model: ${id}`)
  return reply(call, modelJson(model, model.snapshot))
}

function reply(call: Call, body: object): Reply {
  return jsonReply(200, body, {
    headers: messagesHeaders(call.identity, newMessagesRequestId(call.identity)),
  })
}

function indexAfter(all: readonly Model[], id: string | null): number {
  return id === null ? 0 : all.findIndex((model) => model.id === id || model.aliases.includes(id)) + 1
}

function modelJson(model: Model, id: string): object {
  const [, line = '', ...version] = model.id.split('-')
  const isDeprecated = model.id === 'claude-sonnet-4-5'
  return {
    type: 'model',
    id,
    display_name: `Claude ${line.charAt(0).toUpperCase()}${line.slice(1)} ${version.join('.')}`,
    created_at: '2026-01-01T00:00:00Z',
    line,
    lifecycle: isDeprecated ? 'deprecated' : 'active',
    deprecated_at: isDeprecated ? '2026-05-30T00:00:00Z' : null,
    retires_at: isDeprecated ? '2026-11-30T00:00:00Z' : null,
    max_input_tokens: model.contextTokensMax,
    max_tokens: model.outputTokensMax,
    capabilities,
  }
}

const yes = { supported: true }
const no = { supported: false }

/** The capabilities are the same for every model: the simulator plays all models alike. */
const capabilities = {
  batch: yes,
  citations: no,
  code_execution: yes,
  context_management: {
    supported: false,
    clear_thinking_20251015: no,
    clear_tool_uses_20250919: no,
    compact_20260112: no,
  },
  effort: { supported: true, low: yes, medium: yes, high: yes, xhigh: yes, max: yes },
  image_input: yes,
  pdf_input: yes,
  server_tools: { supported: true, code_execution: yes, web_search: yes },
  structured_outputs: yes,
  thinking: { supported: true, types: { adaptive: yes, between_tools: yes, disabled: yes, enabled: yes } },
}
