import type { ActorKind } from '../../kernel/actor.ts'
import type { DeliveryStatus, DisabledReason, EventType, WebhookFormat } from '../../kernel/vocabulary.ts'
import { column } from '../columns.ts'
import { table } from '../table.ts'

/** Events and their deliveries. Amounts are nanodollars, times are milliseconds (UTC). */

const { bytes, flag, integer, json, text } = column

export const EVENTS_TABLES = {
  webhook: table('webhook', {
    columns: {
      id: text,
      accountId: text.references('account'),
      url: text,
      events: json<readonly string[]>(),
      description: text,
      format: text.of<WebhookFormat>(),
      enabled: flag.default(true),
      disabledReason: text.of<DisabledReason>().orNull(),
      createdAtMs: integer,
      // The first failure after the last success.
      failingSinceMs: integer.orNull(),
      lastDeliveryAtMs: integer.orNull(),
      lastStatus: integer.orNull(),
      // Secrets are sealed.
      secret: bytes,
      formerSecret: bytes.orNull(),
      formerUntilMs: integer.orNull(),
    },
    key: ['id'],
    indexes: {
      webhook_enabled: { columns: ['accountId'], where: 'enabled' },
    },
  }),

  /** Changes and crossed thresholds, written in the transactions that cause them. This table is the activity log. */
  event: table('event', {
    columns: {
      id: text,
      accountId: text,
      type: text.of<EventType>(),
      createdAtMs: integer,
      actorKind: text.of<ActorKind>(),
      actorId: text.orNull(),
      actorName: text.orNull(),
      // JSON, as it is sent: a column of the kind json would lose digits of money and the order of members.
      data: text,
      // An event with the same text is not recorded again for the account.
      once: text.orNull(),
    },
    key: ['id'],
    indexes: {
      event_by_account: { columns: ['accountId', 'id'] },
      event_once: { columns: ['accountId', 'once'], isUnique: true, where: 'once IS NOT NULL' },
    },
    isWide: true,
  }),

  webhookDelivery: table('webhook_delivery', {
    columns: {
      id: text,
      webhookId: text,
      eventId: text,
      status: text.of<DeliveryStatus>(),
      attempts: integer.default(0),
      responseStatus: integer.orNull(),
      responseBody: text.orNull(),
      error: text.orNull(),
      lastAttemptAtMs: integer.orNull(),
      // While a node has claimed the delivery: when it is due again if that node never reports.
      nextAttemptAtMs: integer.orNull(),
      createdAtMs: integer,
    },
    key: ['id'],
    indexes: {
      webhook_delivery_pending: {
        columns: ['webhookId', 'nextAttemptAtMs', 'id'],
        where: "status = 'pending'",
      },
      webhook_delivery_by_webhook: { columns: ['webhookId', 'id'] },
      webhook_delivery_once: { columns: ['eventId', 'webhookId'], isUnique: true },
    },
    checks: ["status IN ('pending', 'succeeded', 'failed')"],
    isHot: true,
  }),
}
