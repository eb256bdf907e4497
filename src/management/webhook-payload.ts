import {
  type OutboxEvent,
  type ToldBudget,
  type ToldKey,
  WEBHOOK_TEST,
  type WebhookRecord,
} from '../webhooks/webhook-store.ts'
import { balanceObject } from './credits.ts'
import { formatInstant, usd } from './fields.ts'
import { toldKey } from './keys.ts'
import { webhookObject } from './webhook-object.ts'

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
