import { type EventObject, eventListQuery } from '../api/event.ts'
import { fieldsOf } from '../api/field-names.ts'
import { rangeOf, type Written } from '../api/fields.ts'
import { type EventRecord, readEventData } from '../webhooks/webhook-store.ts'
import { formatOf, replyExport } from './csv.ts'
import type { Role } from './roles.ts'
import { defineRoute, formatInstant, pageObject } from './route.ts'

function eventObject(event: EventRecord, role: Role): Written<EventObject> {
  return {
    id: event.id,
    object: 'event',
    ...fieldsOf(event, ['type', 'createdAtMs', 'accountId', 'actor']),
    data: readEventData(event, role === 'operator') as EventObject['data'],
  }
}

const COLUMNS = ['id', 'type', 'created_at', 'account_id', 'actor_kind', 'actor_id', 'actor_name', 'data']

function eventRow(event: EventRecord, role: Role) {
  const { actor } = event
  const members = eventObject(event, role)
  return { ...members, actor_kind: actor.kind, actor_id: actor.id, actor_name: actor.name }
}

export const getEvent = defineRoute({
  summary: 'Show an event',
  async handle({ accountId, id, role }, { store }) {
    const event = await store.getEvent(accountId, id)
    return event && eventObject(event, role)
  },
})

export const listEvents = defineRoute({
  summary: 'List or export changes and crossed thresholds, newest first',
  description: 'Events are stored for 400 days.',
  query: eventListQuery,
  alsoAs: {
    'text/csv': 'One row per event; `data` is JSON. Complete without `limit`.',
  },
  async handle({ listedAccountId, role, query, exchange, atMs }, { store }) {
    const { type = null, actor: actorId = null, after = null } = query
    const asked = { accountId: listedAccountId, type, actorId, after, ...rangeOf(query) }
    if (formatOf(query.format, exchange.headers) === 'json') {
      const page = await store.listEvents({ ...asked, limit: query.limit ?? 100 })
      return pageObject(page, (event) => eventObject(event, role))
    }
    return replyExport('csv', {
      name: `events-${formatInstant(atMs).slice(0, 10)}`,
      columns: COLUMNS,
      after,
      limit: query.limit,
      pageMax: 1_000,
      async read(from, limit) {
        const { rows, more } = await store.listEvents({ ...asked, after: from, limit })
        const next = more ? (rows.at(-1)?.id ?? null) : null
        return { rows: rows.map((event) => eventRow(event, role)), next }
      },
    })
  },
})
