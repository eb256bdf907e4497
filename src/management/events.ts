import { type EventListQuery, type EventObject, eventListQuery, eventSchema } from '../api/event.ts'
import { listOf, type Written } from '../api/fields.ts'
import { rawNumber } from '../kernel/money.ts'
import type { Store } from '../store/store.ts'
import type { EventQuery, EventRecord } from '../webhooks/webhook-store.ts'
import { CSV_TYPE, csvRow, prefersCsv } from './csv.ts'
import { defineRoute, formatInstant, replyFile, replyPage } from './route.ts'

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** Numbers stay text: a double cannot hold every amount. */
const writtenNumbers: Reviver = (_name, value, { source }) =>
  typeof value === 'number' && source !== undefined ? rawNumber(source) : value

function eventObject(event: EventRecord): Written<EventObject> {
  return {
    id: event.id,
    object: 'event',
    type: event.type,
    created_at: formatInstant(event.createdAtMs),
    account_id: event.accountId,
    actor: event.actor,
    data: JSON.parse(event.dataJson, writtenNumbers as (name: string, value: unknown) => unknown),
  }
}

const COLUMNS = ['id', 'type', 'created_at', 'account_id', 'actor_kind', 'actor_id', 'actor_name', 'data']

function csvLine({ id, type, createdAtMs, accountId, actor, dataJson }: EventRecord): string {
  const cells = [id, type, formatInstant(createdAtMs), accountId, actor.kind, actor.id, actor.name, dataJson]
  return csvRow(cells)
}

const EXPORT_PAGE = 1_000

/** All events that match, a page at a time. */
async function* exportEvents(
  store: Store,
  query: Omit<EventQuery, 'limit'>,
  limit: number,
): AsyncGenerator<Buffer, void, undefined> {
  let { after } = query
  let left = limit
  let text = csvRow(COLUMNS)
  for (;;) {
    const { rows, more } = await store.listEvents({ ...query, after, limit: Math.min(left, EXPORT_PAGE) })
    for (const event of rows) text += csvLine(event)
    yield Buffer.from(text)
    text = ''
    left -= rows.length
    after = rows.at(-1)?.id ?? null
    if (!more || left <= 0) return
  }
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
  async handle({ listedAccountId, query, exchange }, { store, clock }) {
    const asked = queryOf(query, listedAccountId)
    if ((query.format ?? (prefersCsv(exchange.headers) ? 'csv' : 'json')) === 'json')
      return replyPage(await store.listEvents({ ...asked, limit: query.limit ?? 100 }), eventObject)
    const filename = `events-${formatInstant(clock.nowMs()).slice(0, 10)}.csv`
    return replyFile(CSV_TYPE, filename, exportEvents(store, asked, query.limit ?? Infinity))
  },
})

export const eventRoutes = [listEvents]
