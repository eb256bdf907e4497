import { refuse } from '../kernel/errors.ts'
import { keyObject } from './key-object.ts'
import {
  type Management,
  type OwnReply,
  type OwnRequest,
  type Route,
  replyJson,
  replyRefused,
} from './route.ts'

/**
 * Revocation is immediate and final. When this answers, the store holds it durably, and since nothing about keys
 * is remembered anywhere else, no request with the key is admitted any more. Repeating it answers the same record.
 */
async function revoke(request: OwnRequest, { clock, store }: Management): Promise<OwnReply> {
  const [id = ''] = request.params
  const key = await store.revokeKey(id, clock.nowMs())
  if (key === null || key.accountId !== request.caller.accountId) {
    return replyRefused(refuse('not_found', 'There is no key with this id.'))
  }
  return replyJson(200, keyObject(key, clock.nowMs()))
}

export const revokeKey: Route = {
  method: 'POST',
  template: '/v1/keys/{id}/revoke',
  access: 'admin',
  handle: revoke,
}
export const deleteKey: Route = {
  method: 'DELETE',
  template: '/v1/keys/{id}',
  access: 'admin',
  handle: revoke,
}
