import { createUlidSource, type IdSource } from '../../kernel/ids.ts'
import { limits } from '../../kernel/limits.ts'
import type { WebhookEventType } from '../../kernel/vocabulary.ts'
import type { KeyRecord } from '../../keys/key-store.ts'
import { nextMonthMs } from '../../ledger/calendar.ts'
import type {
  EventPayload,
  OutboxEvent,
  Recorded,
  ToldBudget,
  ToldKey,
  UnreadableEvent,
} from '../../webhooks/webhook-store.ts'
import { number, present, type Row, text, textOrNull } from '../rows.ts'
import { getKey, modelsOf as namesOf } from './keys.ts'
import { hasLease, RELAY, takeLease } from './lease.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { balanceOf, type KeptBudget, keyOf, type OutboxFacts } from './outbox.ts'
import { join, type Sql, sql } from './sql.ts'

/** The relay: events and their deliveries in the place of rows of the outbox. */

export function* readOutbox(
  holder: string,
  atMs: number,
): Operation<readonly (OutboxEvent | UnreadableEvent)[] | null> {
  if (!(yield* takeLease(RELAY, holder, atMs))) return null
  const rows = yield sql`
    SELECT sequence, account_id, type, key_id, at_ms, facts FROM webhook_outbox
    ORDER BY sequence LIMIT ${limits.webhookRelayMax}`
  const nowMs = rows.length === 0 ? atMs : yield* currentTime(atMs)
  const events: (OutboxEvent | UnreadableEvent)[] = []
  for (const row of rows) {
    const keyId = textOrNull(row, 'key_id')
    const record = keyId === null ? null : yield* getKey(text(row, 'account_id'), keyId, nowMs)
    events.push(readableEvent(row, record, nowMs))
  }
  return events
}

/** A row that cannot be read, perhaps of another version, must not hold up the rows behind it. */
function readableEvent(row: Row, record: KeyRecord | null, nowMs: number): OutboxEvent | UnreadableEvent {
  try {
    return outboxEvent(row, record, nowMs)
  } catch (error) {
    const sequence = BigInt(row['sequence'] as bigint)
    return { sequence, type: text(row, 'type'), unreadable: (error as Error).message }
  }
}

function outboxEvent(row: Row, record: KeyRecord | null, nowMs: number): OutboxEvent {
  const facts = factsOf(row['facts'])
  const of = {
    sequence: BigInt(row['sequence'] as bigint),
    accountId: text(row, 'account_id'),
    atMs: number(row, 'at_ms'),
  }
  const type = text(row, 'type') as WebhookEventType
  switch (type) {
    case 'balance.low':
    case 'balance.exhausted':
      return { ...of, type, balance: balanceOf(given(facts.balance)) }
    case 'call.unpriced':
      return { ...of, type, model: facts.model ?? null, requestId: given(facts.requestId) }
    case 'webhook.disabled':
      return { ...of, type, webhook: given(facts.webhook) }
  }
  const key = facts.key === undefined ? { record: given(record), atMs: nowMs } : toldKey(facts.key)
  switch (type) {
    case 'key.budget.threshold':
    case 'key.budget.exceeded':
      return { ...of, type, key, budget: budgetOf(given(facts.budget)) }
    case 'key.rotated':
      return { ...of, type, key, oldKey: toldKey(given(facts.oldKey)) }
    case 'key.expiring':
      return { ...of, type, key, days: given(facts.days) }
    case 'key.created':
    case 'key.updated':
    case 'key.revoked':
    case 'key.expired':
      return { ...of, type, key }
    default:
      throw new Error('this version has no such event')
  }
}

function toldKey(kept: NonNullable<OutboxFacts['key']>): ToldKey {
  return { record: keyOf(kept), atMs: kept.atMs }
}

function budgetOf({ percent, spent, held, cap, month, requestId }: KeptBudget): ToldBudget {
  return {
    ...{ percent, spentNanos: BigInt(spent), heldNanos: BigInt(held), capNanos: BigInt(cap) },
    ...{ month, resetsAtMs: nextMonthMs(Date.parse(`${month}-01T00:00:00Z`)), requestId },
  }
}

/** SQLite gives JSON as text. */
function factsOf(column: unknown): OutboxFacts {
  return (typeof column === 'string' ? JSON.parse(column) : column) as OutboxFacts
}

function given<T>(value: T | null | undefined): T {
  if (value === null || value === undefined)
    throw new Error('a row of the outbox lacks what its event is made of')
  return value
}

interface Endpoint {
  readonly id: string
  readonly accountId: string
  readonly events: readonly string[]
  readonly sinceMs: number
}

/** The most rows of one statement. */
const INSERTED_AT_ONCE_MAX = 1_000

export const keepEvents = atomic(function* (
  holder: string,
  events: readonly EventPayload[],
  atMs: number,
): Operation<Recorded> {
  if (!(yield* hasLease(RELAY, holder, atMs))) return 'lost'
  if (events.length === 0) return 'recorded'
  const told = yield sql`
    DELETE FROM webhook_outbox WHERE sequence IN (${join(events.map(({ sequence }) => sequence))})
    RETURNING sequence, account_id, type, at_ms`
  const rows = new Map(told.map((row) => [BigInt(row['sequence'] as bigint), row]))
  const endpoints = (yield sql`SELECT id, account_id, events, since_ms FROM webhook WHERE enabled`).map(
    endpointOf,
  )
  const nowMs = yield* currentTime(atMs)
  const nextUlid = createUlidSource({ nowMs: () => nowMs, monotonicMs: () => nowMs })
  const made: Sql[] = []
  const deliveries: Sql[] = []
  for (const { sequence, payload } of events) {
    const row = rows.get(sequence)
    if (row === undefined || payload === null) continue
    const type = text(row, 'type')
    const wanted = endpoints.filter((endpoint) => isFor(endpoint, row))
    if (wanted.length === 0) continue
    const eventId = `evt_${nextUlid()}`
    made.push(sql`(${eventId}, ${text(row, 'account_id')}, ${type}, ${payload}, ${nowMs})`)
    for (const { id } of wanted) deliveries.push(newDelivery(nextUlid, id, eventId, type, nowMs))
  }
  yield* insertAll(sql`webhook_event (id, account_id, type, payload, created_at_ms)`, made)
  yield* insertAll(DELIVERIES, deliveries)
  return 'recorded'
})

function endpointOf(row: Row): Endpoint {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    events: namesOf(row['events']) ?? [],
    sinceMs: number(row, 'since_ms'),
  }
}

function isFor({ accountId, events, sinceMs }: Endpoint, row: Row): boolean {
  if (accountId !== text(row, 'account_id') || sinceMs > number(row, 'at_ms')) return false
  return events.includes('*') || events.includes(text(row, 'type'))
}

const DELIVERIES = sql`webhook_delivery (id, webhook_id, event_id, event_type, status, next_attempt_at_ms, created_at_ms)`

function newDelivery(
  nextUlid: IdSource,
  webhookId: string,
  eventId: string,
  type: string,
  atMs: number,
): Sql {
  return sql`(${`whd_${nextUlid()}`}, ${webhookId}, ${eventId}, ${type}, 'pending', ${atMs}, ${atMs})`
}

function* insertAll(into: Sql, rows: readonly Sql[]): Operation<void> {
  for (let i = 0; i < rows.length; i += INSERTED_AT_ONCE_MAX)
    yield sql`INSERT INTO ${into} VALUES ${join(rows.slice(i, i + INSERTED_AT_ONCE_MAX))}`
}

/** Makes a delivery of an event to one endpoint, due at once. Returns its id. */
export function* queueDelivery(
  webhookId: string,
  event: { readonly id: string; readonly type: string },
  nowMs: number,
): Operation<string> {
  const nextUlid = createUlidSource({ nowMs: () => nowMs, monotonicMs: () => nowMs })
  const id = `whd_${nextUlid()}`
  const [row] = yield sql`
    INSERT INTO ${DELIVERIES} VALUES (${id}, ${webhookId}, ${event.id}, ${event.type}, 'pending', ${nowMs}, ${nowMs})
    RETURNING id`
  return text(present(row), 'id')
}
