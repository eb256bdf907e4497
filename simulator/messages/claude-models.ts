import { type Call, pageOf } from '../call.ts'
import { findModel, listModels, type Model } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { requireVersion } from './messages-request.ts'

/** GET /v1/models on the Messages surface, in pages. */
export function listClaudeModels(call: Call): Reply {
  requireVersion(call)
  const { page, ends } = pageOf(call, listModels('messages').map(modelJson))
  return jsonReply({ data: page, ...ends })
}

/** GET /v1/models/{id} on the Messages surface */
export function getClaudeModel(call: Call): Reply {
  requireVersion(call)
  const model = findModel('messages', call.param)
  if (model === undefined) throw new Refusal(404, `model: ${call.param}`)
  return jsonReply(modelJson(model))
}

function modelJson(model: Model) {
  const [, line = '', ...version] = model.id.split('-')
  return {
    type: 'model',
    id: model.snapshot,
    display_name: `Claude ${line.charAt(0).toUpperCase()}${line.slice(1)} ${version.join('.')}`,
    created_at: '2026-01-01T00:00:00Z',
    line,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: model.contextTokensMax,
    max_tokens: model.outputTokensMax,
    capabilities: {},
  }
}
