import { z } from 'zod'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { checkBody } from './check-body.ts'
import { keyObject } from './key-object.ts'
import { type Route, replyJson, replyRefused } from './route.ts'

// Unknown fields are refused: a limit that is misspelt, or that this version does not have, must not be ignored.
const body = z.strictObject({
  name: z
    .string('name must be a text of 1 to 120 characters.')
    .min(1, 'name must not be empty.')
    .max(120, 'name must have at most 120 characters.'),
})

export const createKey: Route = {
  method: 'POST',
  template: '/v1/keys',
  access: 'admin',
  async handle(request, { clock, nextUlid, digestKey, servicePrefix, store }) {
    const checked = checkBody(body, request.body)
    if (checked.kind === 'refused') return replyRefused(checked.refusal)
    const secret = mintKey(servicePrefix, 'live')
    const key = await store.createKey({
      id: `key_${nextUlid()}`,
      accountId: request.caller.accountId,
      name: checked.value.name,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, servicePrefix),
      createdAtMs: clock.nowMs(),
      expiresAtMs: null,
    })
    const object = { ...keyObject(key, clock.nowMs()), key: secret.reveal() }
    return replyJson(201, object, ['cache-control', 'no-store'])
  },
}
