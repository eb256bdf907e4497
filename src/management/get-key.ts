import { keyObject, keySchema, refuseMissingKey } from './key-object.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'

export const getKey = defineRoute({
  method: 'GET',
  template: '/v1/keys/{id}',
  access: 'admin',
  operationId: 'get_key',
  summary: 'Show an API key',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: keySchema },
  errors: ['bad_request', 'not_found'],
  async handle({ caller, params: [id = ''] }, { clock, store, waitingCalls }) {
    const nowMs = clock.nowMs()
    const key = await store.getKey(caller.accountId, id, nowMs)
    return key === null
      ? replyRefused(refuseMissingKey())
      : replyUnstored(200, keyObject(key, nowMs, waitingCalls))
  },
})
