import type { TableParts } from './table-parts.ts'

/** Webhook endpoints, events and deliveries. */
export const WEBHOOK_TABLES: Readonly<Record<string, TableParts>> = {
  webhook: {
    columns: {
      id: 'text',
      account_id: 'text -> account',
      url: 'text',
      events: 'json',
      description: 'text',
      format: 'text',
      enabled: 'flag = true',
      disabled_reason: 'text?',
      created_at_ms: 'integer',
      /** The first failure after the last success. */
      failing_since_ms: 'integer?',
      last_delivery_at_ms: 'integer?',
      last_status: 'integer?',
      /** Secrets are sealed. */
      secret: 'bytes',
      former_secret: 'bytes?',
      former_until_ms: 'integer?',
      older_secret: 'bytes?',
      older_until_ms: 'integer?',
    },
    key: 'id',
    indexes: { webhook_enabled: 'account_id where enabled' },
  },

  /** Changes and crossings, written in the transactions that cause them; also the activity log. */
  event: {
    columns: {
      id: 'text',
      account_id: 'text',
      type: 'text',
      created_at_ms: 'integer',
      actor_kind: 'text',
      actor_id: 'text?',
      actor_name: 'text?',
      /** JSON, as it is sent: a column of the kind json would lose digits of money and the order of members. */
      data: 'text',
      /** An event with the same text is not recorded again for the account. */
      once: 'text?',
    },
    key: 'id',
    indexes: {
      event_by_account: 'account_id, id',
      event_once: 'unique account_id, once where once IS NOT NULL',
    },
    isWide: true,
  },

  /** One event on its way to one webhook. */
  webhook_delivery: {
    columns: {
      id: 'text',
      webhook_id: 'text',
      event_id: 'text',
      status: 'text',
      attempts: 'integer = 0',
      response_status: 'integer?',
      error: 'text?',
      last_attempt_at_ms: 'integer?',
      /** While a node has claimed the delivery: when it is due again if that node never reports. */
      next_attempt_at_ms: 'integer?',
      created_at_ms: 'integer',
    },
    key: 'id',
    indexes: {
      webhook_delivery_due: "next_attempt_at_ms, id where status = 'pending'",
      webhook_delivery_by_webhook: 'webhook_id, id',
      webhook_delivery_once: 'unique event_id, webhook_id',
    },
    checks: ["status IN ('pending', 'succeeded', 'failed')"],
    isHot: true,
  },
}
