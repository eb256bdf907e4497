import { z } from 'zod'
import { DELIVERY_STATUSES, DISABLED_REASONS, EVENT_TYPES, WEBHOOK_FORMATS } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const EVENT_NAMES = ['*', ...EVENT_TYPES] as const

const eventsExpected = `events must be ["*"] or a list of ${EVENT_TYPES.join(', ')}.`

const webhookFields = {
  url: f
    .textField('url', 2_048)
    .describe(
      'The URL that events are posted to. It must use https, and a public address unless the configuration allows private ones.',
    ),
  events: z
    .array(z.enum(EVENT_NAMES, eventsExpected), eventsExpected)
    .min(1, 'events must not be an empty list; ["*"] is all events.')
    .refine((names) => new Set(names).size === names.length, 'events must not name an event twice.')
    .refine(
      (names) => names.length === 1 || !names.includes('*'),
      'events must be ["*"] alone, or names of events.',
    )
    .meta({ uniqueItems: true, description: 'The events to send; `["*"]` is all, including future ones.' }),
  description: f.textField('description', 500, { empty: true }).optional().describe('For people.'),
  format: f.choiceParameter(
    'format',
    WEBHOOK_FORMATS,
    '`standard` (the default) sends the event, `slack` sends `{"text": "…"}` with a sentence about it.',
  ),
}

export const newWebhookFields = z.strictObject(webhookFields)

export const webhookEditFields = z.strictObject({
  ...webhookFields,
  url: webhookFields.url.optional(),
  events: webhookFields.events.optional(),
  enabled: f.flagField(
    'enabled',
    'While false, no events are queued. Setting it to true also clears `disabled_reason`.',
  ),
})

export const webhookListQuery = z.strictObject(f.paging('webhook'))

export const deliveryListQuery = z.strictObject({
  ...f.paging('delivery'),
  status: f.choiceParameter('status', DELIVERY_STATUSES, 'Only deliveries with this status.'),
})

export const webhookSchema = z
  .object({
    id: f.idOf('webhook'),
    object: z.literal('webhook'),
    url: z.string(),
    events: z.array(z.string()).describe('The events that the webhook receives; `*` means all.'),
    description: z.string(),
    format: z.enum(WEBHOOK_FORMATS).describe('`slack` sends `{"text"}` for people.'),
    enabled: f.flag('While false, no events are queued for the webhook.'),
    disabled_reason: z
      .enum(DISABLED_REASONS)
      .nullable()
      .describe(
        '`gone`: the endpoint answered 410. `failing`: every delivery failed for five days. `manual`: a PATCH disabled it.',
      ),
    created_at: f.instant(),
    last_delivery_at: f.instant().nullable().describe('When a delivery was last attempted.'),
    last_status: z.int().nullable().describe('The HTTP status of the last answer; null if there was none.'),
  })
  .meta({ id: 'webhook', description: 'An endpoint that events are sent to. The secret is not part of it.' })
export type Webhook = z.infer<typeof webhookSchema>

export const webhookWithSecretSchema = webhookSchema
  .extend({
    secret: f.optionalText(
      'Signs the messages. Shown once: a replay with the same Idempotency-Key omits it.',
    ),
  })
  .meta({ id: 'webhook_with_secret', description: 'A webhook with its new secret.' })

export const deliverySchema = z
  .object({
    id: f.idOf('delivery'),
    object: z.literal('webhook_delivery'),
    event_id: f.string('The `webhook-id` of the message, the same on every attempt.'),
    event_type: z.string(),
    status: z.enum(DELIVERY_STATUSES),
    attempts: f.whole(),
    response_status: z
      .int()
      .nullable()
      .describe('The HTTP status of the last answer; null if there was none.'),
    response_body: f.stringOrNull(
      'The first 2,048 bytes of the last answer as text; null if none came. Control characters are replaced.',
    ),
    error: f.stringOrNull('Why the last attempt failed; null after a success.'),
    last_attempt_at: f.instant().nullable(),
    next_attempt_at: f.instant().nullable().describe('The time of the next attempt; null if there is none.'),
    created_at: f.instant(),
  })
  .meta({ id: 'webhook_delivery', description: 'The delivery of one event to one webhook.' })
export type Delivery = z.infer<typeof deliverySchema>
