import { refuse } from '../kernel/errors.ts'
import { keyObject, keySchema, refuseMissingKey } from './key-object.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'

/** What the holder of a key may know of it: its limits, and how much of them is left. */
export const getOwnKey = defineRoute({
  method: 'GET',
  template: '/v1/keys/me',
  access: 'any_key',
  operationId: 'get_own_key',
  summary: 'Show the API key that this request comes with',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: keySchema },
  errors: ['bad_request', 'not_found'],
  async handle({ caller }, { clock, store, waitingCalls }) {
    if (caller.kind === 'admin_key') {
      return replyRefused(refuse('not_found', 'An admin key has no record; this is for API keys.'))
    }
    const nowMs = clock.nowMs()
    const key = await store.getKey(caller.accountId, caller.keyId, nowMs)
    return key === null
      ? replyRefused(refuseMissingKey())
      : replyUnstored(200, keyObject(key, nowMs, waitingCalls))
  },
})
