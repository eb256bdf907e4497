import type { Call } from '../call.ts'
import { findModel, listModels } from '../models.ts'
import { Refusal } from '../refusal.ts'
import { jsonReply, type Reply } from '../reply.ts'

/** GET /v1/models on the Chat surface: every id and every dated name, on one page. */
export function listOpenaiModels(): Reply {
  const names = listModels('chat').flatMap((model) => [model.id, ...model.aliases])
  return jsonReply({ object: 'list', data: names.map(modelJson) })
}

/** GET /v1/models/{id} on the Chat surface */
export function getOpenaiModel({ param: id }: Call): Reply {
  if (findModel('chat', id) !== undefined) return jsonReply(modelJson(id))
  throw new Refusal(404, `The model '${id}' does not exist`, { param: 'model', code: 'model_not_found' })
}

function modelJson(id: string): object {
  return { id, object: 'model', created: 1_767_225_600, owned_by: 'system' }
}
