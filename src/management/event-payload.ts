import { balanceObject, eventKey, formatInstant, usd, webhookObject } from '../api/objects.ts'
import type { OutboxEvent, ToldBudget } from '../webhooks/webhook-store.ts'
import { eventPayload } from './webhooks.ts'

/** The payload of an event. Its objects are those of the management API. */
export function payloadOf(event: OutboxEvent): string {
  return eventPayload(event.type, event.atMs, dataOf(event))
}

function dataOf(event: OutboxEvent): Record<string, unknown> {
  switch (event.type) {
    case 'key.created':
    case 'key.updated':
    case 'key.revoked':
    case 'key.expired':
      return { key: eventKey(event.key.record, event.key.atMs) }
    case 'key.expiring':
      return { key: eventKey(event.key.record, event.key.atMs), expires_in_days: event.days }
    case 'key.rotated':
      return {
        key: eventKey(event.key.record, event.key.atMs),
        old_key: eventKey(event.oldKey.record, event.oldKey.atMs),
      }
    case 'key.budget.threshold':
    case 'key.budget.exceeded':
      return { key: eventKey(event.key.record, event.key.atMs), ...budgetOf(event.budget) }
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
