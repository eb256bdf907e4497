import { answerRequests } from './answer-requests.ts'
import { listSchema } from './list-page.ts'
import { requestSchema } from './request-object.ts'
import { requestQuery } from './request-query.ts'
import { defineRoute } from './route.ts'

export const PAGE_DESCRIPTION =
  'The order is that of their beginning, so calls that arrive meanwhile never shift a page. Where matches are rare ' +
  'a page may be short, or empty, and still have more after it: go on while `has_more` is true.'

export const EXPORTED = {
  'application/x-ndjson': 'A request on each line, as JSON.',
  'text/csv': 'A row for each request, under the names of its members; the counts of `usage` are columns.',
}

export const listRequests = defineRoute({
  method: 'GET',
  template: '/gateway/v1/requests',
  access: 'admin',
  operationId: 'list_requests',
  summary: 'List or export the calls of the account, newest first',
  description: PAGE_DESCRIPTION,
  query: requestQuery,
  body: null,
  repeatable: false,
  success: { status: 200, schema: listSchema(requestSchema), alsoAs: EXPORTED },
  errors: ['bad_request'],
  handle: async (request, management) => await answerRequests(request, management, null),
})
