import { keyObject, keySchema, refuseMissingKey } from './key-object.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute, type Management, type OwnReply, type OwnRequest, replyRefused } from './route.ts'

/**
 * Revocation is immediate and final. When this answers, the store holds it durably, and since nothing about keys
 * is remembered anywhere else, no request with the key is admitted any more. Repeating it answers the same record.
 * Nothing about a body can stand in its way: whoever revokes a key is in a hurry.
 */
export async function revoke(
  { caller, params: [id = ''] }: Pick<OwnRequest, 'caller' | 'params'>,
  { clock, store, waitingCalls, limitsMoved }: Management,
): Promise<OwnReply> {
  const nowMs = clock.nowMs()
  const key = await store.revokeKey(caller.accountId, id, nowMs)
  if (key === null) return replyRefused(refuseMissingKey())
  // Its calls that wait for room are refused now, not when their time is up.
  limitsMoved()
  return replyUnstored(200, keyObject(key, nowMs, waitingCalls))
}

export const revokeKey = defineRoute({
  method: 'POST',
  template: '/v1/keys/{id}/revoke',
  access: 'admin',
  operationId: 'revoke_key',
  summary: 'Revoke an API key, at once and for good',
  description:
    'Calls that are running finish. Repeating it answers the same record. A body that comes with it is ignored.',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: keySchema },
  errors: ['bad_request', 'not_found'],
  handle: revoke,
})
