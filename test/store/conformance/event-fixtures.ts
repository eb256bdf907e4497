import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { SweptTo } from '../../../src/keys/key-store.ts'
import type { Store } from '../../../src/store/store.ts'
import type {
  ClaimedDelivery,
  DeliveryAttempt,
  EventRecord,
  NewWebhook,
  WebhookRecord,
} from '../../../src/webhooks/webhook-store.ts'
import { closing, NOON, opening } from './fixtures.ts'

/** An instant before every call of the tests. */
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
  const made = await store.createWebhook(newWebhook(name, more), null, SYSTEM)
  assert.ok(made.kind === 'done', made.kind)
  return made.value
}

const taken = new WeakMap<Store, Set<string>>()

export interface EmittedEvent extends Omit<EventRecord, 'dataJson'> {
  readonly data: Readonly<Record<string, unknown>>
}

/** The events since the last call, in order. */
export async function emitted(store: Store): Promise<readonly EmittedEvent[]> {
  const filter = { accountId: null, type: null, actorId: null, fromMs: null, toMs: null }
  const seen = taken.get(store) ?? new Set()
  taken.set(store, seen)
  const { rows } = await store.listEvents({ ...filter, after: null, limit: 2_000 })
  const fresh = rows.filter(({ id }) => !seen.has(id))
  for (const { id } of fresh) seen.add(id)
  return fresh
    .map(({ dataJson, ...event }) => ({ ...event, data: JSON.parse(dataJson) as Record<string, unknown> }))
    .reverse()
}

/** An event in short form: `50% req_1`, `50% day req_1`, `key.created key_a`, `balance.low`. */
export function inShort({ type, data }: EmittedEvent): string {
  const { threshold_percent: percent, period, request_id, key } = data
  if (percent === undefined) return key === undefined ? type : `${type} ${(key as { id: string }).id}`
  const scope = type.startsWith('account.') ? ' account' : period === 'day' ? ' day' : ''
  return `${percent}%${scope} ${request_id}`
}

let calls = 0

export async function spend(
  store: Store,
  keyName: string,
  costNanos: bigint,
  more: { readonly atMs?: number; readonly requestId?: string } = {},
): Promise<string> {
  calls += 1
  const { atMs = NOON, requestId = `req_${String(calls).padStart(6, '0')}` } = more
  // A call without a hold is admitted whatever has been spent.
  const admission = await store.admit(opening(requestId, keyName, { atMs, hold: { kind: 'none' } }))
  assert.equal(admission.kind, 'admitted')
  await store.settle(closing(requestId, { costNanos, listNanos: costNanos, atMs: atMs + 1 }))
  return requestId
}

export const attempt = (
  { id, attempts, webhook }: ClaimedDelivery,
  outcome: DeliveryAttempt['outcome'],
  responseStatus: number | null = 200,
): DeliveryAttempt => ({
  ...{ id, attempts, webhookId: webhook.id, url: webhook.url, outcome, responseStatus },
  responseBody: `answer ${responseStatus}`,
  error: outcome.kind === 'succeeded' ? null : `it answered ${responseStatus}`,
})

export const SWEPT_AT_ONCE = 20

/** Sweeps for keys that expire. Returns the number of steps. */
export async function sweep(store: Store, atMs: number, from: SweptTo | null = null): Promise<number> {
  const to = await store.sweepEvents(atMs, from, SWEPT_AT_ONCE)
  return to === null ? 1 : 1 + (await sweep(store, atMs, to))
}

/** Deletes some old events, and fails some deliveries that will not be sent. Returns their number; 0: all are pruned. */
export async function prune(store: Store, atMs: number): Promise<number> {
  const limit = 1_000
  let pruned = await store.pruneEvents(atMs, limit)
  for (const webhook of await store.listOverfull()) pruned += await store.failExcess(webhook, limit)
  return pruned
}
