import { z } from 'zod'
import { KEY_STATUSES, keyId, keyObject, keySchema } from './key-object.ts'
import { AFTER_EXPECTED, limitParameter, listObject, listSchema } from './list-page.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute } from './route.ts'
import { textField } from './text-field.ts'

const query = z.strictObject({
  limit: limitParameter(),
  after: keyId(AFTER_EXPECTED).optional().meta({ description: 'The `next` of the page before.' }),
  status: z
    .enum(KEY_STATUSES, `status must be one of ${KEY_STATUSES.join(', ')}.`)
    .optional()
    .meta({ description: 'Only keys in this state.' }),
  search: textField('search', 200).optional().meta({
    description: 'Part of a name in any case, of an id, of a prefix or of the last four characters.',
  }),
})

export const listKeys = defineRoute({
  method: 'GET',
  template: '/v1/keys',
  access: 'admin',
  operationId: 'list_keys',
  summary: 'List API keys, newest first',
  query,
  body: null,
  repeatable: false,
  success: { status: 200, schema: listSchema(keySchema) },
  errors: ['bad_request'],
  async handle({ caller, query }, { clock, store, waitingCalls }) {
    const atMs = clock.nowMs()
    const page = await store.listKeys({
      accountId: caller.accountId,
      status: query.status ?? null,
      search: query.search ?? null,
      after: query.after ?? null,
      limit: query.limit,
      atMs,
    })
    return replyUnstored(
      200,
      listObject(page, (key) => keyObject(key, atMs, waitingCalls)),
    )
  },
})
