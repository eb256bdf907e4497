import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { DELIVERY_STATUSES } from '../kernel/vocabulary.ts'
import { judgeEndpointUrl } from '../webhooks/endpoint-address.ts'
import { mintSigningSecret } from '../webhooks/signing-secret.ts'
import type { Redelivery, WebhookChanges } from '../webhooks/webhook-store.ts'
import {
  AFTER_EXPECTED,
  deliveryId,
  formatInstant,
  limitParameter,
  listObject,
  listSchema,
  textField,
  webhookId,
  wordParameter,
} from './fields.ts'
import {
  defineRoute,
  type Management,
  type OwnReply,
  type Refused,
  refused,
  refusedOtherCommand,
  replyEmpty,
  replyJson,
  replyOnce,
} from './route.ts'
import {
  deliveryObject,
  deliverySchema,
  EVENT_NAMES,
  FORMATS,
  testPayload,
  webhookObject,
  webhookSchema,
  webhookWithSecretSchema,
} from './webhook-object.ts'

// The fields of a webhook in requests

const eventsExpected = `events must be ["*"] or a list of ${EVENT_NAMES.slice(1).join(', ')}.`

const webhookFields = {
  url: textField('url', 2_048).describe(
    'Where events are posted to: https, and no private address unless the configuration permits it.',
  ),
  events: z
    .array(z.enum(EVENT_NAMES, eventsExpected), eventsExpected)
    .min(1, 'events must not be an empty list; ["*"] is all events.')
    .refine((names) => new Set(names).size === names.length, 'events must not name an event twice.')
    .refine(
      (names) => names.length === 1 || !names.includes('*'),
      'events must be ["*"] alone, or names of events.',
    )
    .meta({
      uniqueItems: true,
      description: 'Which events are sent there; `["*"]` is all, also those to come.',
    }),
  description: textField('description', 500, { empty: true }).optional().describe('For people.'),
  format: z
    .enum(FORMATS, `format must be one of ${FORMATS.join(', ')}.`)
    .optional()
    .describe('`standard` (the default) sends the event, `slack` a sentence about it as `{"text"}`.'),
}

const newWebhookFields = z.strictObject(webhookFields)

const webhookEditFields = z.strictObject({
  ...webhookFields,
  url: webhookFields.url.optional(),
  events: webhookFields.events.optional(),
  enabled: z
    .boolean('enabled must be true or false.')
    .optional()
    .describe('While it is false nothing is queued. True also forgets why it was disabled.'),
})

/** Only the fields that were sent: an edit must not touch the rest. */
function webhookChanges(fields: z.infer<typeof webhookEditFields>): WebhookChanges {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

// The refusals of a webhook's endpoints

async function refusedUrl(url: string, { webhooks }: Management): Promise<Refused | null> {
  const problem = await judgeEndpointUrl(url, webhooks.rules)
  return problem === null ? null : refused('bad_request', problem, 'url')
}

function refusedMissing(): Refused {
  return refused('not_found', 'There is no webhook with this id.')
}

// The endpoints

export const createWebhook = defineRoute({
  endpoint: 'POST /gateway/v1/webhooks',
  operationId: 'create_webhook',
  summary: 'Create a webhook: an endpoint that events are sent to',
  description:
    'The secret that messages are signed with (Standard Webhooks, `whsec_…`) is in this answer and nowhere else.',
  body: newWebhookFields,
  repeatable: true,
  success: { status: 201, schema: webhookWithSecretSchema },
  async handle({ caller, body, idempotency }, management) {
    const { store, clock, nextUlid, webhooks } = management
    const wrong = await refusedUrl(body.url, management)
    if (wrong !== null) return wrong
    const { url, events, description = '', format = 'standard' } = body
    const id = `wh_${nextUlid()}`
    const secret = mintSigningSecret()
    const webhook = { id, accountId: caller.accountId, url, events, description, format }
    const sealed = { secret: webhooks.sealer.seal(secret, id), createdAtMs: clock.nowMs() }
    const result = await store.createWebhook({ ...webhook, ...sealed }, idempotency)
    if (result.kind === 'conflict') return refusedOtherCommand()
    if (result.kind === 'too_many') {
      return refused('conflict', `There are ${limits.webhooksMax} webhooks already, and no more are taken.`)
    }
    const object = webhookObject(result.value)
    // The secret of the first attempt is not told again, and the secret made now belongs to no webhook.
    return replyOnce(result, result.kind === 'repeated' ? object : { ...object, secret: secret.reveal() })
  },
})

const listWebhooks = defineRoute({
  endpoint: 'GET /gateway/v1/webhooks',
  operationId: 'list_webhooks',
  summary: 'List webhooks, newest first',
  query: z.strictObject({
    limit: limitParameter(),
    after: webhookId(AFTER_EXPECTED).optional().describe('The `next` of the page before.'),
  }),
  success: { status: 200, schema: listSchema(webhookSchema) },
  async handle({ caller, query: { after = null, limit } }, { store }) {
    const { rows, more } = await store.listWebhooks({ accountId: caller.accountId, after, limit })
    return replyJson(200, listObject(rows.map(webhookObject), more ? (rows.at(-1)?.id ?? null) : null))
  },
})

const getWebhook = defineRoute({
  endpoint: 'GET /gateway/v1/webhooks/{id}',
  operationId: 'get_webhook',
  summary: 'Show a webhook',
  success: { status: 200, schema: webhookSchema },
  errors: ['not_found'],
  async handle({ caller, params: [id = ''] }, { store }) {
    const webhook = await store.getWebhook(caller.accountId, id)
    return webhook === null ? refusedMissing() : replyJson(200, webhookObject(webhook))
  },
})

const updateWebhook = defineRoute({
  endpoint: 'PATCH /gateway/v1/webhooks/{id}',
  operationId: 'update_webhook',
  summary: 'Change a webhook',
  description:
    'Changes the fields that are sent and leaves the others. `"enabled": true` brings back one that was disabled.',
  body: webhookEditFields,
  success: { status: 200, schema: webhookSchema },
  errors: ['not_found'],
  async handle({ caller, params: [id = ''], body }, management) {
    const { store, clock } = management
    if ((await store.getWebhook(caller.accountId, id)) === null) return refusedMissing()
    const wrong = body.url === undefined ? null : await refusedUrl(body.url, management)
    if (wrong !== null) return wrong
    const webhook = await store.updateWebhook(caller.accountId, id, webhookChanges(body), clock.nowMs())
    return webhook === null ? refusedMissing() : replyJson(200, webhookObject(webhook))
  },
})

const deleteWebhook = defineRoute({
  endpoint: 'DELETE /gateway/v1/webhooks/{id}',
  operationId: 'delete_webhook',
  summary: 'Delete a webhook: what waits for it is not delivered',
  success: { status: 204, schema: null },
  errors: ['not_found'],
  async handle({ caller, params: [id = ''] }, { store }) {
    return (await store.deleteWebhook(caller.accountId, id)) ? replyEmpty() : refusedMissing()
  },
})

const rotateSecret = defineRoute({
  endpoint: 'POST /gateway/v1/webhooks/{id}/rotate-secret',
  operationId: 'rotate_webhook_secret',
  summary: 'Give a webhook a new secret',
  description:
    'For 24 hours messages are signed with the old one as well, so that a receiver can change over in peace. It can be done ' +
    'twice in that time; a third time is refused until the oldest signs no more. The new secret is in this answer and ' +
    'nowhere else. A body that comes with it is ignored.',
  repeatable: true,
  success: { status: 200, schema: webhookWithSecretSchema },
  errors: ['not_found', 'conflict'],
  async handle({ caller, params: [id = ''], idempotency }, { store, clock, webhooks }) {
    const secret = mintSigningSecret()
    const rotation = await store.rotateWebhookSecret(
      caller.accountId,
      id,
      webhooks.sealer.seal(secret, id),
      clock.nowMs(),
      idempotency,
    )
    if (rotation.kind === 'none') return refusedMissing()
    if (rotation.kind === 'conflict') return refusedOtherCommand()
    if (rotation.kind === 'too_soon') {
      const message = `This secret was changed twice already, and both former ones still sign. Rotate it after ${formatInstant(rotation.untilMs)}.`
      return refused('conflict', message)
    }
    const object = webhookObject(rotation.value)
    const isRepeated = rotation.kind === 'repeated'
    return replyOnce(rotation, isRepeated ? object : { ...object, secret: secret.reveal() }, 200)
  },
})

function replyQueued(queued: Redelivery, missing: string): OwnReply {
  if (queued.kind === 'none') return refused('not_found', missing)
  if (queued.kind === 'conflict') return refusedOtherCommand()
  if (queued.kind === 'disabled')
    return refused('conflict', 'This webhook is disabled. PATCH it with {"enabled": true} first.')
  return replyOnce(queued, deliveryObject(queued.value), 202)
}

const testWebhook = defineRoute({
  endpoint: 'POST /gateway/v1/webhooks/{id}/test',
  operationId: 'test_webhook',
  summary: 'Send the event `webhook.test` to this webhook alone',
  description: 'Answers with the delivery, which is under way. A body that comes with it is ignored.',
  repeatable: true,
  success: { status: 202, schema: deliverySchema },
  errors: ['not_found', 'conflict'],
  async handle({ caller, params: [id = ''], idempotency }, { store, clock }) {
    const webhook = await store.getWebhook(caller.accountId, id)
    if (webhook === null) return refusedMissing()
    const nowMs = clock.nowMs()
    const payload = testPayload(webhook, nowMs)
    const queued = await store.queueTest(caller.accountId, id, payload, nowMs, idempotency)
    return replyQueued(queued, 'There is no webhook with this id.')
  },
})

const listDeliveries = defineRoute({
  endpoint: 'GET /gateway/v1/webhooks/{id}/deliveries',
  operationId: 'list_webhook_deliveries',
  summary: 'List the deliveries of a webhook, newest first',
  description: 'They are kept for 30 days.',
  query: z.strictObject({
    limit: limitParameter(),
    after: deliveryId(AFTER_EXPECTED).optional().describe('The `next` of the page before.'),
    status: wordParameter('status', DELIVERY_STATUSES, 'Only deliveries in this state.'),
  }),
  success: { status: 200, schema: listSchema(deliverySchema) },
  errors: ['not_found'],
  async handle({ caller: { accountId }, params: [id = ''], query }, { store }) {
    const { status = null, after = null, limit } = query
    if ((await store.getWebhook(accountId, id)) === null) return refusedMissing()
    const { rows, more } = await store.listDeliveries({ accountId, webhookId: id, status, after, limit })
    return replyJson(200, listObject(rows.map(deliveryObject), more ? (rows.at(-1)?.id ?? null) : null))
  },
})

const redeliver = defineRoute({
  endpoint: 'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
  operationId: 'redeliver_webhook',
  summary: 'Send the event of a delivery again, now',
  description:
    'One that is still pending is tried at once; of any other a new delivery of the same event is made. A body that comes ' +
    'with it is ignored.',
  repeatable: true,
  success: { status: 202, schema: deliverySchema },
  errors: ['not_found', 'conflict'],
  async handle({ caller, params: [id = '', delivery = ''], idempotency }, { store, clock }) {
    const queued = await store.redeliver(caller.accountId, id, delivery, clock.nowMs(), idempotency)
    return replyQueued(queued, 'There is no such delivery of this webhook.')
  },
})

export const webhookRoutes = [
  createWebhook,
  listWebhooks,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  rotateSecret,
  testWebhook,
  listDeliveries,
  redeliver,
]
