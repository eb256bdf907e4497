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
      /** Enabled since this instant: earlier events are not for this endpoint. */
      since_ms: 'integer',
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

  webhook_outbox: {
    columns: {
      sequence: 'sequence',
      account_id: 'text',
      type: 'text',
      key_id: 'text?',
      at_ms: 'integer',
      facts: 'json',
    },
    key: 'sequence',
  },

  webhook_event: {
    columns: { id: 'text', account_id: 'text', type: 'text', payload: 'text', created_at_ms: 'integer' },
    key: 'id',
    indexes: { webhook_event_by_age: 'created_at_ms' },
    isWide: true,
  },

  webhook_delivery: {
    columns: {
      id: 'text',
      webhook_id: 'text',
      event_id: 'text',
      event_type: 'text',
      status: 'text',
      attempts: 'integer = 0',
      response_status: 'integer?',
      error: 'text?',
      last_attempt_at_ms: 'integer?',
      next_attempt_at_ms: 'integer?',
      created_at_ms: 'integer',
    },
    key: 'id',
    indexes: {
      webhook_delivery_due: "webhook_id, next_attempt_at_ms where status = 'pending'",
      webhook_delivery_by_webhook: 'webhook_id, id',
      webhook_delivery_by_age: 'created_at_ms',
    },
    checks: ["status IN ('pending', 'succeeded', 'failed')"],
    isHot: true,
  },

  webhook_lease: {
    columns: { name: 'text', holder: 'text', until_ms: 'integer' },
    key: 'name',
    isHot: true,
    isExported: false,
  },

  /** Events that must not be reported again; a null instant: until the mark is deleted. */
  webhook_mark: {
    columns: { name: 'text', until_ms: 'integer?' },
    key: 'name',
    indexes: { webhook_mark_by_age: 'until_ms' },
  },
}
