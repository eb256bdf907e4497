import { z } from 'zod'
import {
  type DeliveryStatus,
  type DisabledReason,
  WEBHOOK_EVENT_TYPES,
  type WebhookFormat,
} from '../kernel/vocabulary.ts'
import {
  type DeliveryRecord,
  type OutboxEvent,
  type ToldBudget,
  type ToldKey,
  WEBHOOK_TEST,
  type WebhookRecord,
} from '../webhooks/webhook-store.ts'
import { balanceObject } from './credits.ts'
import {
  deliveryId,
  formatInstant,
  instant,
  type Members,
  objectOf,
  schemaOf,
  usd,
  webhookId,
} from './fields.ts'
import { toldKey } from './keys.ts'

/** Names that an endpoint may subscribe to: `*` is all events. */
export const EVENT_NAMES = ['*', ...WEBHOOK_EVENT_TYPES] as const
export const FORMATS = ['standard', 'slack'] as const satisfies readonly WebhookFormat[]
export const DELIVERY_STATUSES = [
  'pending',
  'succeeded',
  'failed',
] as const satisfies readonly DeliveryStatus[]

const DISABLED_REASONS = ['gone', 'failing', 'manual'] as const satisfies readonly DisabledReason[]

/** The secret is not part of a webhook: only its creation and its rotation tell it, once. */
const webhookMembers: Members<WebhookRecord> = {
  id: [webhookId(), 'id'],
  object: [z.literal('webhook'), () => 'webhook'],
  url: [z.string(), 'url'],
  events: [z.array(z.enum(EVENT_NAMES)).describe('The events that are sent there; `*` is all.'), 'events'],
  description: [z.string(), 'description'],
  format: [z.enum(FORMATS).describe('`slack` sends `{"text"}` for people.'), 'format'],
  enabled: [z.boolean().describe('While it is false nothing is queued for it.'), 'enabled'],
  disabled_reason: [
    z
      .enum(DISABLED_REASONS)
      .nullable()
      .describe(
        '`gone`: it answered 410. `failing`: nothing but failures for five days. `manual`: by an edit.',
      ),
    'disabledReason',
  ],
  created_at: [instant(), (webhook) => formatInstant(webhook.createdAtMs)],
  last_delivery_at: [
    instant().nullable().describe('The last attempt at a delivery.'),
    (webhook) => formatInstant(webhook.lastDeliveryAtMs),
  ],
  last_status: [
    z.int().nullable().describe('The HTTP status of its answer; null if none came.'),
    'lastStatus',
  ],
}

export const webhookSchema = schemaOf(webhookMembers).meta({
  id: 'webhook',
  description: 'An endpoint that events are sent to. The secret is not part of it.',
})

export const webhookWithSecretSchema = schemaOf(webhookMembers)
  .extend({
    secret: z
      .string()
      .optional()
      .describe(
        'What messages are signed with. It is told once, and not when an Idempotency-Key repeats the request.',
      ),
  })
  .meta({ id: 'webhook_with_secret', description: 'A webhook with its new secret.' })

export function webhookObject(webhook: WebhookRecord): Record<string, unknown> {
  return objectOf(webhookMembers, webhook)
}

const deliveryMembers: Members<DeliveryRecord> = {
  id: [deliveryId(), 'id'],
  object: [z.literal('webhook_delivery'), () => 'webhook_delivery'],
  event_id: [z.string().describe('The `webhook-id` of the message, the same at every attempt.'), 'eventId'],
  event_type: [z.string(), 'eventType'],
  status: [z.enum(DELIVERY_STATUSES), 'status'],
  attempts: [z.int().min(0), 'attempts'],
  response_status: [
    z.int().nullable().describe('The HTTP status of the last answer; null if none came.'),
    'responseStatus',
  ],
  error: [
    z
      .string()
      .nullable()
      .describe('Why the last attempt failed; null after a success, and before the first.'),
    'error',
  ],
  last_attempt_at: [instant().nullable(), (delivery) => formatInstant(delivery.lastAttemptAtMs)],
  next_attempt_at: [
    instant().nullable().describe('Null when there will be none.'),
    (delivery) => formatInstant(delivery.nextAttemptAtMs),
  ],
  created_at: [instant(), (delivery) => formatInstant(delivery.createdAtMs)],
}

export const deliverySchema = schemaOf(deliveryMembers).meta({
  id: 'webhook_delivery',
  description: 'One event on its way to one webhook.',
})

export function deliveryObject(delivery: DeliveryRecord): Record<string, unknown> {
  return objectOf(deliveryMembers, delivery)
}

/** The text that is sent and signed for an event. Its objects are those of the management API. */
export function payloadOf(event: OutboxEvent): string {
  return payload(event.type, event.atMs, dataOf(event))
}

export function testPayload(webhook: WebhookRecord, atMs: number): string {
  return payload(WEBHOOK_TEST, atMs, { webhook: webhookObject(webhook) })
}

function payload(type: string, atMs: number, data: Record<string, unknown>): string {
  return JSON.stringify({ type, timestamp: formatInstant(atMs), data })
}

const keyOf = ({ record, atMs }: ToldKey) => toldKey(record, atMs)

function dataOf(event: OutboxEvent): Record<string, unknown> {
  switch (event.type) {
    case 'key.created':
    case 'key.updated':
    case 'key.revoked':
    case 'key.expired':
      return { key: keyOf(event.key) }
    case 'key.expiring':
      return { key: keyOf(event.key), expires_in_days: event.days }
    case 'key.rotated':
      return { key: keyOf(event.key), old_key: keyOf(event.oldKey) }
    case 'key.budget.threshold':
    case 'key.budget.exceeded':
      return { key: keyOf(event.key), ...budgetOf(event.budget) }
    case 'balance.low':
    case 'balance.exhausted':
      return { balance: balanceObject(event.balance) }
    case 'call.unpriced':
      return { model: event.model, request_id: event.requestId }
    case 'webhook.disabled':
      return { webhook: webhookObject(event.webhook) }
  }
}

function budgetOf(budget: ToldBudget): Record<string, unknown> {
  return {
    threshold_percent: budget.percent,
    spent_usd: usd(budget.spentNanos),
    cap_usd: usd(budget.capNanos),
    held_usd: usd(budget.heldNanos),
    resets_at: formatInstant(budget.resetsAtMs),
    request_id: budget.requestId,
  }
}
