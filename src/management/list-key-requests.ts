import { answerRequests } from './answer-requests.ts'
import { refuseMissingKey } from './key-object.ts'
import { listSchema } from './list-page.ts'
import { EXPORTED, PAGE_DESCRIPTION } from './list-requests.ts'
import { requestSchema } from './request-object.ts'
import { requestQuery } from './request-query.ts'
import { defineRoute, replyRefused } from './route.ts'

/** The full log of a key, revoked or not: when a key has leaked, this says what was done with it. */
export const listKeyRequests = defineRoute({
  method: 'GET',
  template: '/v1/keys/{id}/requests',
  access: 'admin',
  operationId: 'list_key_requests',
  summary: 'List or export the calls of an API key, newest first',
  description: `Also of a key that is revoked, and whatever its \`log_requests\` is. ${PAGE_DESCRIPTION}`,
  query: requestQuery,
  body: null,
  repeatable: false,
  success: { status: 200, schema: listSchema(requestSchema), alsoAs: EXPORTED },
  errors: ['bad_request', 'not_found'],
  async handle(request, management) {
    const { caller, params } = request
    const key = await management.store.getKey(caller.accountId, params[0] ?? '', management.clock.nowMs())
    return key === null ? replyRefused(refuseMissingKey()) : await answerRequests(request, management, key.id)
  },
})
