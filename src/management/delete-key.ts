import { keySchema } from './key-object.ts'
import { revoke } from './revoke-key.ts'
import { defineRoute } from './route.ts'

/** The record stays: what a key has spent must be shown as long as there are books. */
export const deleteKey = defineRoute({
  method: 'DELETE',
  template: '/v1/keys/{id}',
  access: 'admin',
  operationId: 'delete_key',
  summary: 'Revoke an API key, like POST /v1/keys/{id}/revoke',
  description:
    'The record stays, so that what the key has spent can be shown. Repeating it answers the same.',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: keySchema },
  errors: ['bad_request', 'not_found'],
  handle: revoke,
})
