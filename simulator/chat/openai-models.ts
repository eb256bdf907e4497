import type { Call } from '../call.ts'
import { findModel, listModels } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'
import { chatHeaders } from './chat-headers.ts'

const createdSeconds = 1_767_225_600

/** GET /v1/models on the Chat surface: every id and every dated name, on one page. */
export function listOpenaiModels(call: Call): Reply {
  const names = listModels('chat').flatMap((model) => [model.id, ...model.aliases])
  const list = { object: 'list', data: names.map(modelJson) }
  return jsonReply(200, list, { headers: chatHeaders(call.identity) })
}

/** GET /v1/models/{id} on the Chat surface */
export function getOpenaiModel(call: Call): Reply {
  const id = call.params[0] ?? ''
  if (findModel('chat', id) === undefined) {
    throw new Refusal(404, `The model '${id}' does not exist`, { param: 'model', code: 'model_not_found' })
  }
  return jsonReply(200, modelJson(id), { headers: chatHeaders(call.identity) })
}

function modelJson(id: string): object {
  return { id, object: 'model', created: createdSeconds, owned_by: 'system' }
}
