import type { OutboxEvent, ToldBudget, ToldKey } from '../webhooks/webhook-store.ts'
import { balanceObject } from './credits.ts'
import { keyObject } from './keys.ts'
import { formatInstant, usd } from './route.ts'
import { eventPayload, webhookObject } from './webhooks.ts'

/** The payload of an event. Its objects are those of the management API. */
export function payloadOf(event: OutboxEvent): string {
  return eventPayload(event.type, event.atMs, dataOf(event))
}

/** A key without the figure that is true on one node only. */
function keyOf({ record, atMs }: ToldKey): Record<string, unknown> {
  const { month_waiting: _, ...object } = keyObject(record, atMs, 0)
  return object
}

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
