import { type EventListQuery, type EventObject, eventListQuery, eventSchema } from '../api/event.ts'
import { listOf, type Written } from '../api/fields.ts'
import { rawNumber } from '../kernel/money.ts'
import type { EventQuery, EventRecord } from '../webhooks/webhook-store.ts'
import { CSV_TYPE, csvRow, exportPages, prefersCsv } from './csv.ts'
import type { Role } from './permissions.ts'
import { defineRoute, formatInstant, replyFile, replyPage } from './route.ts'

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/**
 * The data of an event as its reader may see it: the upstreams and the metadata of an account are the operator's. Numbers
 * stay as they were written, because a double cannot hold every amount.
 */
function dataOf({ type, dataJson }: EventRecord, role: Role): EventObject['data'] {
  const isOwn = role !== 'operator' && type.startsWith('account.')
  const revive: Reviver = (name, value, { source }) => {
    if (isOwn && /^(?:upstreams|metadata)\b/.test(name)) return undefined
    return typeof value === 'number' && source !== undefined ? rawNumber(source) : value
  }
  return JSON.parse(dataJson, revive as (name: string, value: unknown) => unknown)
}

function eventObject(event: EventRecord, role: Role): Written<EventObject> {
  return {
    id: event.id,
    object: 'event',
    type: event.type,
    created_at: formatInstant(event.createdAtMs),
    account_id: event.accountId,
    actor: event.actor,
    data: dataOf(event, role),
  }
}

const COLUMNS = ['id', 'type', 'created_at', 'account_id', 'actor_kind', 'actor_id', 'actor_name', 'data']

function csvLine(event: EventRecord, role: Role): string {
  const { id, type, createdAtMs, accountId, actor } = event
  const head = [id, type, formatInstant(createdAtMs), accountId, actor.kind, actor.id, actor.name]
  return csvRow([...head, dataOf(event, role)])
}

function queryOf(query: EventListQuery, accountId: string | null): Omit<EventQuery, 'limit'> {
  return {
    accountId,
    type: query.type ?? null,
    actorId: query.actor ?? null,
    startMs: query.start?.fromMs ?? null,
    endMs: query.end === undefined ? null : query.end.fromMs + query.end.lengthMs,
    after: query.after ?? null,
  }
}

const listEvents = defineRoute({
  endpoint: 'GET /gateway/v1/events',
  operationId: 'list_events',
  summary: 'List or export changes and crossed thresholds, newest first',
  description: 'Events are stored for 400 days.',
  query: eventListQuery,
  answer: listOf(eventSchema),
  alsoAs: {
    'text/csv': 'One row per event; `data` is JSON. Complete without `limit`.',
  },
  async handle({ listedAccountId, role, query, exchange }, { store, clock }) {
    const asked = queryOf(query, listedAccountId)
    if ((query.format ?? (prefersCsv(exchange.headers) ? 'csv' : 'json')) === 'json')
      return replyPage(await store.listEvents({ ...asked, limit: query.limit ?? 100 }), (event) =>
        eventObject(event, role),
      )
    const filename = `events-${formatInstant(clock.nowMs()).slice(0, 10)}.csv`
    const pages = { limit: query.limit, pageMax: 1_000 }
    const chunks = exportPages(csvRow(COLUMNS), asked.after, pages, async (after, limit) => {
      const { rows, more } = await store.listEvents({ ...asked, after, limit })
      return {
        rows: rows.map((event) => csvLine(event, role)),
        next: more ? (rows.at(-1)?.id ?? null) : null,
      }
    })
    return replyFile(CSV_TYPE, filename, chunks)
  },
})

export const eventRoutes = [listEvents]
