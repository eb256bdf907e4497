import { mintKey, shownParts } from '../keys/key-format.ts'
import { keyChanges, NO_LIMITS, newKeyFields, refusePastExpiry } from './key-fields.ts'
import { createdKeySchema, keyObject } from './key-object.ts'
import { refuseOtherCommand, replyRepeated, replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'

export const createKey = defineRoute({
  method: 'POST',
  template: '/v1/keys',
  access: 'admin',
  operationId: 'create_key',
  summary: 'Create an API key',
  description:
    'The secret is in this answer and nowhere else. Unknown fields are refused, so that a misspelt limit ' +
    'does not create a key without it.',
  query: null,
  body: newKeyFields,
  repeatable: true,
  success: { status: 201, schema: createdKeySchema },
  errors: ['bad_request', 'request_timeout'],
  async handle({ caller, body, once }, { clock, nextUlid, digestKey, servicePrefix, store, waitingCalls }) {
    const nowMs = clock.nowMs()
    const secret = mintKey(servicePrefix, 'live')
    const key = {
      ...NO_LIMITS,
      ...keyChanges(body),
      name: body.name,
      id: `key_${nextUlid()}`,
      accountId: caller.accountId,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, servicePrefix),
      createdAtMs: nowMs,
    }
    const result = await store.createKey(key, once)
    if (result.kind === 'conflict') return replyRefused(refuseOtherCommand())
    if (result.kind === 'born_expired') return replyRefused(refusePastExpiry())
    const object = keyObject(result.value, nowMs, waitingCalls)
    // The secret of the first attempt is not known any more, and this one belongs to no key.
    if (result.kind === 'repeated') return replyRepeated(201, object)
    return replyUnstored(201, { ...object, key: secret.reveal() })
  },
})
