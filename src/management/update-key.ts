import { keyChanges, keyEditFields, refusePastExpiry } from './key-fields.ts'
import { keyObject, keySchema, refuseFinalKey, refuseMissingKey } from './key-object.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'

/** A new limit counts from the next admission on, and leaves what was spent as it is. */
export const updateKey = defineRoute({
  method: 'PATCH',
  template: '/v1/keys/{id}',
  access: 'admin',
  operationId: 'update_key',
  summary: 'Change an API key',
  description:
    'Changes the fields that are sent and leaves the others; null takes a limit away. It counts from the next ' +
    'call on, and what was spent stays spent. A revoked or expired key cannot be changed.',
  query: null,
  body: keyEditFields,
  repeatable: false,
  success: { status: 200, schema: keySchema },
  errors: ['bad_request', 'not_found', 'conflict', 'request_timeout'],
  async handle({ caller, params: [id = ''], body }, { clock, store, waitingCalls, limitsMoved }) {
    const nowMs = clock.nowMs()
    const expiresAtMs = body.expires_at ?? Number.POSITIVE_INFINITY
    if (expiresAtMs <= nowMs) return replyRefused(refusePastExpiry())
    const edit = await store.updateKey(caller.accountId, id, keyChanges(body), nowMs)
    if (edit.kind === 'none') return replyRefused(refuseMissingKey())
    if (edit.kind === 'final') return replyRefused(refuseFinalKey(edit.key))
    limitsMoved()
    return replyUnstored(200, keyObject(edit.key, nowMs, waitingCalls))
  },
})
