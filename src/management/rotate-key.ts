import { z } from 'zod'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { createdKeySchema, keyObject, refuseFinalKey, refuseMissingKey } from './key-object.ts'
import { refuseOtherCommand, replyRepeated, replyUnstored } from './reply-unstored.ts'
import { defineRoute, replyRefused } from './route.ts'

const YEAR_SECONDS = 31_536_000
const message = `old_expires_in_seconds must be a whole number from 0 to ${YEAR_SECONDS}.`

const body = z.strictObject({
  old_expires_in_seconds: z.int(message).min(0, message).max(YEAR_SECONDS, message).optional().meta({
    description:
      'Ends the old key this many seconds from now, unless it ends earlier anyway. Absent leaves it as it is.',
  }),
})

/** Rotation is additive: both keys work until the traffic has moved, and then the old one ends. */
export const rotateKey = defineRoute({
  method: 'POST',
  template: '/v1/keys/{id}/rotate',
  access: 'admin',
  operationId: 'rotate_key',
  summary: 'Create a key in the place of another',
  description:
    'The new key has the name and the limits of the old one and a month of its own. Its secret is in this answer ' +
    'and nowhere else. A revoked or expired key cannot be rotated.',
  query: null,
  body,
  repeatable: true,
  success: { status: 201, schema: createdKeySchema },
  errors: ['bad_request', 'not_found', 'conflict', 'request_timeout'],
  async handle({ caller, params: [id = ''], body, once }, management) {
    const { clock, nextUlid, digestKey, servicePrefix, store, waitingCalls } = management
    const nowMs = clock.nowMs()
    const { old_expires_in_seconds: seconds } = body
    const secret = mintKey(servicePrefix, 'live')
    const successor = {
      id: `key_${nextUlid()}`,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, servicePrefix),
      createdAtMs: nowMs,
      oldExpiresAtMs: seconds === undefined ? null : nowMs + seconds * 1_000,
    }
    const rotation = await store.rotateKey(caller.accountId, id, successor, once)
    if (rotation.kind === 'none') return replyRefused(refuseMissingKey())
    if (rotation.kind === 'final') return replyRefused(refuseFinalKey(rotation.key))
    if (rotation.kind === 'conflict') return replyRefused(refuseOtherCommand())
    management.limitsMoved()
    const object = keyObject(rotation.value, nowMs, waitingCalls)
    if (rotation.kind === 'repeated') return replyRepeated(201, object)
    return replyUnstored(201, { ...object, key: secret.reveal() })
  },
})
