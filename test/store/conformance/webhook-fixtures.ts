import assert from 'node:assert/strict'
import type { Store } from '../../../src/store/store.ts'
import type {
  DeliveryAttempt,
  NewWebhook,
  OutboxEvent,
  WebhookRecord,
} from '../../../src/webhooks/webhook-store.ts'
import { closing, NOON, opening } from './fixtures.ts'

/** An instant before every call of the tests: an endpoint gets no events of the time before it was made. */
export const BEFORE = NOON - 60_000

export function newWebhook(name: string, more: Partial<NewWebhook> = {}): NewWebhook {
  return {
    ...{ id: `wh_${name}`, accountId: 'default', url: `https://${name}.example/hook`, events: ['*'] },
    ...{ description: '', format: 'standard', secret: Buffer.from(`sealed ${name}`), createdAtMs: BEFORE },
    ...more,
  }
}

export async function addWebhook(
  store: Store,
  name: string,
  more: Partial<NewWebhook> = {},
): Promise<WebhookRecord> {
  const made = await store.createWebhook(newWebhook(name, more), null)
  assert.ok(made.kind === 'done', made.kind)
  return made.value
}

/** All events of the outbox, in their order. The events stay in the outbox. */
export async function outbox(store: Store, atMs = NOON + 1_000): Promise<readonly OutboxEvent[]> {
  const events = await store.readOutbox('relay', atMs)
  assert.ok(events !== null, 'the lease of the relay is held elsewhere')
  return events.map((event) => {
    assert.ok(!('unreadable' in event), `${event.type} cannot be read`)
    return event
  })
}

/** Relays the whole outbox into events and deliveries. A payload has only the type of its event. */
export async function relay(store: Store, atMs = NOON + 1_000): Promise<readonly OutboxEvent[]> {
  const told: OutboxEvent[] = []
  for (;;) {
    const events = await outbox(store, atMs)
    if (events.length === 0) return told
    const payloads = events.map(({ sequence, type }) => ({ sequence, payload: JSON.stringify({ type }) }))
    assert.equal(await store.keepEvents('relay', payloads, atMs), 'recorded')
    told.push(...events)
  }
}

/** An event in short: `50% req_1`, `balance.low`. */
export function inShort(event: OutboxEvent): string {
  if ('budget' in event) return `${event.budget.percent}% ${event.budget.requestId}`
  return event.type
}

let calls = 0

/** A call that is admitted and settled; resolves with its id. */
export async function spend(
  store: Store,
  keyName: string,
  costNanos: bigint,
  more: { readonly atMs?: number; readonly requestId?: string } = {},
): Promise<string> {
  calls += 1
  const { atMs = NOON, requestId = `req_${String(calls).padStart(6, '0')}` } = more
  // A call without a hold is admitted however much is spent.
  const admission = await store.admit(opening(requestId, keyName, { atMs, hold: { kind: 'none' } }))
  assert.equal(admission.kind, 'admitted')
  await store.settle(closing(requestId, { costNanos, listNanos: costNanos, atMs: atMs + 1 }))
  return requestId
}

export const attempt = (
  id: string,
  outcome: DeliveryAttempt['outcome'],
  responseStatus: number | null = 200,
): DeliveryAttempt => ({
  ...{ id, outcome, responseStatus },
  error: outcome.kind === 'succeeded' ? null : `it answered ${responseStatus}`,
})
