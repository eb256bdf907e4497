import { fieldsOf } from '../api/field-names.ts'
import type { Written } from '../api/fields.ts'
import { webhookObject } from '../api/objects.ts'
import {
  type Delivery,
  deliveryListQuery,
  newWebhookFields,
  webhookEditFields,
  webhookListQuery,
} from '../api/webhook.ts'
import { limits } from '../kernel/limits.ts'
import { mintSigningSecret } from '../webhooks/deliver.ts'
import { judgeEndpointUrl } from '../webhooks/endpoint-address.ts'
import type { DeliveryRecord, QueuedDelivery } from '../webhooks/webhook-store.ts'
import {
  defineRoute,
  invalid,
  type Management,
  pageObject,
  type Refused,
  refused,
  replyEmpty,
  replyIdempotent,
  withoutUndefined,
} from './route.ts'

function deliveryObject(delivery: DeliveryRecord): Written<Delivery> {
  return {
    id: delivery.id,
    object: 'webhook_delivery',
    ...fieldsOf(delivery, ['eventId', 'eventType', 'status', 'attempts', 'responseStatus']),
    ...fieldsOf(delivery, ['responseBody', 'error', 'lastAttemptAtMs', 'nextAttemptAtMs', 'createdAtMs']),
  }
}

async function refusedUrl(url: string, { webhooks }: Management): Promise<Refused | null> {
  const problem = await judgeEndpointUrl(url, webhooks.rules)
  return problem === null ? null : invalid('url', problem)
}

export const createWebhook = defineRoute({
  summary: 'Create a webhook: an endpoint that events are sent to',
  description: 'Only this answer has the secret that signs messages (Standard Webhooks, `whsec_…`).',
  body: newWebhookFields,
  repeatable: true,
  status: 201,
  async handle({ accountId, actor, body, idempotency, atMs: createdAtMs }, management) {
    const { store, nextUlid, webhooks } = management
    const wrong = await refusedUrl(body.url, management)
    if (wrong !== null) return wrong
    const { url, events, description = '', format = 'standard' } = body
    const id = `wh_${nextUlid()}`
    const secret = mintSigningSecret()
    const webhook = { id, accountId, url, events, description, format }
    const sealed = { secret: webhooks.sealer.seal(secret, id), createdAtMs }
    const result = await store.createWebhook({ ...webhook, ...sealed }, idempotency, actor)
    if (result.kind === 'too_many') {
      return refused('conflict', `There are ${limits.webhooksMax} webhooks already. Delete one first.`)
    }
    return replyIdempotent(result, (created, isNew) => {
      const object = webhookObject(created)
      return isNew ? { ...object, secret: secret.reveal() } : object
    })
  },
})

export const listWebhooks = defineRoute({
  summary: 'List webhooks, newest first',
  query: webhookListQuery,
  async handle({ listedAccountId: accountId, query: { after = null, limit } }, { store }) {
    return pageObject(await store.listWebhooks({ accountId, after, limit }), webhookObject)
  },
})

export const getWebhook = defineRoute({
  summary: 'Show a webhook',
  async handle({ accountId, id }, { store }) {
    const webhook = await store.getWebhook(accountId, id)
    return webhook && webhookObject(webhook)
  },
})

export const updateWebhook = defineRoute({
  summary: 'Change a webhook',
  description:
    'Changes the fields that are sent and leaves the others. `"enabled": true` enables a disabled webhook again.',
  body: webhookEditFields,
  async handle({ accountId, actor, id, body, atMs }, management) {
    const { store } = management
    if ((await store.getWebhook(accountId, id)) === null) return null
    const wrong = body.url === undefined ? null : await refusedUrl(body.url, management)
    if (wrong !== null) return wrong
    const webhook = await store.updateWebhook(accountId, id, withoutUndefined(body), atMs, actor)
    return webhook && webhookObject(webhook)
  },
})

export const deleteWebhook = defineRoute({
  summary: 'Delete a webhook and its pending deliveries',
  status: 204,
  async handle({ accountId, actor, id, atMs }, { store }) {
    return (await store.deleteWebhook(accountId, id, atMs, actor)) ? replyEmpty() : null
  },
})

export const rotateWebhookSecret = defineRoute({
  summary: 'Rotate the secret of a webhook',
  description:
    'The new and the old secret both sign for 24 hours. A second rotation within that time retires the older of the two. Only this ' +
    'answer has the new secret. The body is ignored.',
  async handle({ accountId, actor, id, atMs }, { store, webhooks }) {
    const secret = mintSigningSecret()
    const sealed = webhooks.sealer.seal(secret, id)
    const webhook = await store.rotateWebhookSecret(accountId, id, sealed, atMs, actor)
    return webhook && { ...webhookObject(webhook), secret: secret.reveal() }
  },
})

function queuedObject(queued: QueuedDelivery) {
  if (queued.kind === 'none') return null
  if (queued.kind === 'done') return deliveryObject(queued.value)
  return refused('conflict', 'This webhook is disabled. PATCH it with {"enabled": true} first.')
}

export const testWebhook = defineRoute({
  summary: 'Send the event `webhook.test` to this webhook only',
  description: 'Answers with the pending delivery. The body is ignored.',
  status: 202,
  async handle({ accountId, actor, id, atMs }, { store }) {
    return queuedObject(await store.queueTest(accountId, id, atMs, actor))
  },
})

export const listWebhookDeliveries = defineRoute({
  summary: 'List the deliveries of a webhook, newest first',
  description: 'Deliveries are stored for 30 days.',
  query: deliveryListQuery,
  async handle({ accountId, id, query }, { store }) {
    const { status = null, after = null, limit } = query
    if ((await store.getWebhook(accountId, id)) === null) return null
    const page = await store.listDeliveries({ accountId, webhookId: id, status, after, limit })
    return pageObject(page, deliveryObject)
  },
})

export const redeliverWebhook = defineRoute({
  summary: 'Send the event of a delivery again, now',
  description:
    'The delivery becomes pending and is attempted at once, with new retries. The body is ignored.',
  status: 202,
  async handle({ accountId, params: [id = '', delivery = ''], atMs }, { store }) {
    return queuedObject(await store.redeliver(accountId, id, delivery, atMs))
  },
})
