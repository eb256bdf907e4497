import { type Actor, SYSTEM } from '../../kernel/actor.ts'
import { createUlidSource, firstUlid, type IdSource } from '../../kernel/ids.ts'
import { limits } from '../../kernel/limits.ts'
import type { Nanos } from '../../kernel/money.ts'
import { EVENT_TYPES, type EventType } from '../../kernel/vocabulary.ts'
import type { Page } from '../../keys/key-store.ts'
import type { EventQuery, EventRecord, OverfullWebhook } from '../../webhooks/webhook-store.ts'
import { bool, namesOf, number, type Row, text, textOrNull } from '../rows.ts'
import { atomic, columnsEqual, currentTime, type Operation, selectPage } from './operation.ts'
import { readSetting, writeSetting } from './settings.ts'
import { FOR_DELETE, onPostgres, raw, type Sql, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/** Events: one row per change or crossing. They form the activity log, and webhooks deliver them. */

interface NewEvent {
  readonly accountId: string
  readonly type: EventType
  readonly actor: Actor
  /** API objects, as `api/objects.ts` writes them; never a secret. */
  readonly data: Readonly<Record<string, unknown>>
  /** For events that must occur only once: a second event of the account with this text is not recorded. */
  readonly once?: string
  /** If set, only this webhook receives the event, whatever it subscribes to. */
  readonly onlyWebhookId?: string
}

/** Call this in the transaction that causes the event. Null: an event with the same `once` exists. */
export function* recordEvent(event: NewEvent, atMs: number): Operation<string | null> {
  const { accountId, type, actor, data, once, onlyWebhookId } = event
  const nowMs = yield* currentTime(atMs)
  const id = `evt_${nextUlid(nowMs)}`
  const by = { actorKind: actor.kind, actorId: actor.id, actorName: actor.name }
  const row = { id, accountId, type, createdAtMs: nowMs, ...by, data: JSON.stringify(data), once }
  if ((yield insertInto('event', [row], sql`ON CONFLICT DO NOTHING RETURNING id`)).length === 0) return null
  countEvent(type)
  const webhooks = yield sql`
    SELECT id, events FROM webhook WHERE account_id = ${accountId} AND enabled ORDER BY id`
  const subscribed = webhooks.filter((webhook) => {
    if (onlyWebhookId !== undefined) return text(webhook, 'id') === onlyWebhookId
    const names = namesOf(webhook['events']) ?? []
    return names.includes('*') || names.includes(type)
  })
  const due = { eventId: id, status: 'pending', nextAttemptAtMs: nowMs, createdAtMs: nowMs }
  const deliveries = subscribed.map((webhook) => ({
    id: `whd_${nextUlid(nowMs)}`,
    webhookId: text(webhook, 'id'),
    ...due,
  }))
  if (deliveries.length > 0) yield insertInto('webhook_delivery', deliveries)
  return id
}

let ulidMs = 0
let ulids = newUlids()

function newUlids(): IdSource {
  return createUlidSource({ nowMs: () => ulidMs, monotonicMs: () => ulidMs })
}

const CLOCK_STEP_MS = 10_000

/** Ids ascend within a transaction. After the clock was set back, new ids are smaller than earlier ones. */
export function nextUlid(nowMs: number): string {
  if (nowMs < ulidMs - CLOCK_STEP_MS) ulids = newUlids()
  ulidMs = nowMs
  return ulids()
}

/** Events recorded by this process, by type, in memory that the store's thread shares with the main thread. */
let counts = new Int32Array(new SharedArrayBuffer(EVENT_TYPES.length * Int32Array.BYTES_PER_ELEMENT))

export function eventCountMemory(): SharedArrayBuffer {
  return counts.buffer as SharedArrayBuffer
}

export function readEventCounts(): ReadonlyMap<string, number> {
  return new Map(EVENT_TYPES.map((type, n) => [type, Atomics.load(counts, n)]))
}

export function shareEventCounts(memory: SharedArrayBuffer): void {
  counts = new Int32Array(memory)
}

function countEvent(type: EventType): void {
  Atomics.add(counts, EVENT_TYPES.indexOf(type), 1)
}

export const EVENT = raw(
  'e.id, e.account_id, e.type, e.created_at_ms, e.actor_kind, e.actor_id, e.actor_name, e.data',
)

export function eventRecord(row: Row): EventRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    type: text(row, 'type') as EventType,
    createdAtMs: number(row, 'created_at_ms'),
    actor: actorOf(row),
    dataJson: text(row, 'data'),
  }
}

export function actorOf(row: Row): Actor {
  const kind = text(row, 'actor_kind') as Actor['kind']
  return { kind, id: textOrNull(row, 'actor_id'), name: textOrNull(row, 'actor_name') }
}

function* listEvents(query: EventQuery): Operation<Page<EventRecord>> {
  const { accountId, type, actorId, fromMs, toMs } = query
  const where = columnsEqual({ account_id: accountId, type, actor_id: actorId })
  if (fromMs !== null) where.push(sql`created_at_ms >= ${fromMs}`)
  if (toMs !== null) where.push(sql`created_at_ms < ${toMs}`)
  return yield* selectPage({ select: EVENT, from: raw('event e'), where }, query, eventRecord)
}

function* getEvent(accountId: string, id: string): Operation<EventRecord | null> {
  const [row] = yield sql`SELECT ${EVENT} FROM event e WHERE e.id = ${id} AND e.account_id = ${accountId}`
  return row === undefined ? null : eventRecord(row)
}

/** As JSON. */
export const BUDGET_THRESHOLDS = 'budget_thresholds'

/** In nanodollars. */
export const BALANCE_LOW = 'balance_low_nanos'

function* setBudgetThresholds(percents: readonly number[]): Operation<void> {
  yield* writeSetting(BUDGET_THRESHOLDS, JSON.stringify(percents))
}

function* setBalanceLow(nanos: Nanos | null): Operation<void> {
  if (nanos === null) yield sql`DELETE FROM setting WHERE name = ${BALANCE_LOW}`
  else yield* writeSetting(BALANCE_LOW, String(nanos))
}

export function* readBalanceLow(): Operation<Nanos | null> {
  const low = yield* readSetting(BALANCE_LOW)
  return low === null ? null : BigInt(low)
}

/** Returns the number of deleted rows. Ids begin with their time, so no index by age is needed. */
const pruneEvents = atomic(function* (atMs: number, limit: number) {
  const nowMs = yield* currentTime(atMs)
  const oldDelivery = `whd_${firstUlid(nowMs - limits.deliveryRetentionMs)}`
  const oldEvent = `evt_${firstUlid(nowMs - limits.eventRetentionMs)}`
  const pruned = [
    yield deleteStep('webhook_delivery', sql`id < ${oldDelivery} AND status <> 'pending'`, limit),
    yield deleteStep('event', sql`id < ${oldEvent}`, limit),
    yield deleteStep('idempotency', sql`at_ms <= ${nowMs - limits.onceMs}`, limit, 'account_id, name'),
  ]
  return pruned.reduce((sum, rows) => sum + rows.length, 0)
})

/** Endpoints with pending deliveries that will not be sent. A read, because it scans all pending deliveries. */
function* listOverfull(): Operation<readonly OverfullWebhook[]> {
  const rows = yield sql`
    SELECT webhook_id, enabled FROM (
      SELECT webhook_id, count(*) AS pending,
        EXISTS (SELECT 1 FROM webhook w WHERE w.id = webhook_id AND w.enabled) AS enabled
      FROM webhook_delivery WHERE status = 'pending' GROUP BY webhook_id) AS counted
    WHERE NOT enabled OR pending > ${limits.webhookPendingMax}`
  return rows.map((row) => ({ id: text(row, 'webhook_id'), enabled: bool(row, 'enabled') }))
}

/** Fails some of the deliveries that will not be sent. Returns their number. */
const failExcess = atomic(function* ({ id, enabled }: OverfullWebhook, limit: number): Operation<number> {
  const isOfWebhook = sql`webhook_id = ${id}`
  const { webhookPendingMax: max } = limits
  const failed = enabled
    ? yield failPending(isOfWebhook, `more than ${max} deliveries were pending`, limit, max)
    : yield failPending(
        sql`${isOfWebhook} AND NOT EXISTS (SELECT 1 FROM webhook w WHERE w.id = ${id} AND w.enabled)`,
        'the webhook was disabled before it was sent',
        limit,
      )
  return failed.length
})

/** Marks pending deliveries as failed, except the `keptMax` whose next attempt is soonest. */
export function failPending(condition: Sql, why: string, limit: number, keptMax = 0): Sql {
  return sql`
    UPDATE webhook_delivery SET status = 'failed', next_attempt_at_ms = NULL, error = coalesce(error, ${why}) WHERE id IN (
      SELECT id FROM webhook_delivery WHERE status = 'pending' AND ${condition}
      ORDER BY webhook_id, next_attempt_at_ms, id LIMIT ${limit} OFFSET ${keptMax}
      ${onPostgres('FOR NO KEY UPDATE SKIP LOCKED')})
    RETURNING id`
}

function deleteStep(table: string, where: Sql, limit: number, key = 'id'): Sql {
  return sql`
    DELETE FROM ${raw(table)} WHERE (${raw(key)}) IN (
      SELECT ${raw(key)} FROM ${raw(table)} WHERE ${where} LIMIT ${limit} ${FOR_DELETE})
    RETURNING 1 AS deleted`
}

/** An event of the installation. It belongs to the account `default`. */
const recordOwnEvent = atomic(function* (type: EventType, data: NewEvent['data'], atMs: number) {
  yield* recordEvent({ accountId: 'default', type, actor: SYSTEM, data }, atMs)
})

export const EVENTS = {
  brief: { getEvent, recordOwnEvent, setBudgetThresholds, setBalanceLow, pruneEvents, failExcess },
  reads: { listEvents, listOverfull },
}
