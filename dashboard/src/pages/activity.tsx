import type { ComponentChildren } from 'preact'
import type { EventData } from '../../../src/api/event-payload.ts'
import { EVENT_TYPES } from '../../../src/kernel/vocabulary.ts'
import type { ActivityEvent } from '../api.ts'
import { addDays, dayInWords, exactTime, money, monthInWords } from '../format.ts'
import { DateRange, Download, Select } from '../parts/choices.tsx'
import { ActorName, KeyLink, RelativeTime, Timestamp } from '../parts/figures.tsx'
import { Listed, usePages } from '../parts/listed.tsx'
import { Empty, Heading } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Link } from '../router.tsx'

const FILTERS = ['type', 'actor', 'start', 'end']

/** Lists changes with their actors, and budgets that crossed a threshold. */
export function ActivityPage({ query }: { readonly query: URLSearchParams }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]))
  const events = usePages('/gateway/v1/events', query, filters)
  const isFiltered = Object.values(filters).some((value) => value !== null)
  return (
    <>
      <Heading title="Activity">
        <Download path="/gateway/v1/events" params={filters} name="events" />
      </Heading>
      <div class="filters">
        <Select
          name="type"
          title="Type"
          options={EVENT_TYPES.toSorted().map((type) => [type, type] as const)}
          query={query}
        />
        <DateRange start={filters['start']} end={filters['end']} />
        {isFiltered && (
          <Link to="/activity" class="button">
            Clear all
          </Link>
        )}
      </div>
      <Listed
        of={events}
        lines={8}
        caption="Activity"
        columns={COLUMNS}
        groupOf={({ created_at }) => dayInWords(created_at)}
        empty={
          isFiltered ? (
            <Empty title="No event matches." action={<Link to="/activity">Show all events</Link>} />
          ) : (
            <Empty
              title="Nothing has changed yet."
              words="This page lists changes to keys, budgets, credit, people, accounts, prices and webhooks, with the person or system that made them. It also lists budgets that cross a threshold."
            />
          )
        }
      />
    </>
  )
}

const COLUMNS: readonly Column<ActivityEvent>[] = [
  {
    title: 'Event',
    lead: 'left',
    cell: (event) => (
      <span class="words">
        <Sentence of={event} />
        <Changes of={dataOf(event).changes} />
      </span>
    ),
  },
  { title: 'By', cell: ({ actor }) => <ActorName actor={actor} /> },
  { title: 'Time, UTC', cell: ({ created_at }) => <Timestamp at={created_at} isOfDay /> },
  { title: 'Type', isMinor: true, cell: ({ type }) => <code class="quiet">{type}</code> },
]

const dataOf = ({ data }: ActivityEvent): EventData => data

function Sentence({ of: event }: { readonly of: ActivityEvent }) {
  const data = dataOf(event)
  const [kind, name] = subjectOf(event.type, data)
  return (
    <>
      {kind} <b class="name">{name}</b> {wordsOf(event.type, data)}{' '}
      {event.type === 'key.expiring' && <RelativeTime at={data.key?.expires_at ?? null} />}
      {data.old_key && <Link to={`/keys/${data.old_key.id}`}>{`from …${data.old_key.last4}`}</Link>}
      {data.request_id != null && <Link to={`/requests/${data.request_id}`}>View request</Link>}
    </>
  )
}

function wordsOf(
  type: string,
  { credit, balance, period, model, resets_at = '', ...data }: EventData,
): string {
  const verb = type.slice(type.lastIndexOf('.') + 1)
  const left = money(balance?.balance_usd ?? 0)
  const added = credit?.amount_usd ?? 0
  if (type.includes('.budget.')) {
    const part = verb === 'exceeded' ? '' : `${data.threshold_percent}% of `
    const days = period === 'day' ? 'the day' : monthInWords(addDays(resets_at.slice(0, 10), -1))
    return `has spent ${part}its budget of ${days}: ${money(data.spent_usd ?? 0)} of ${money(data.cap_usd ?? 0)}`
  }
  const words: Readonly<Record<string, string>> = {
    'balance.low': `is low on credit: ${left} left`,
    'balance.exhausted': `has used up its credit: the balance is ${left}`,
    'credit.added': `got ${added < 0 ? 'a correction of' : 'credit of'} ${money(added)}: ${credit?.reason}`,
    'call.unpriced': `${data.refused ? 'was refused' : 'used'} ${model}, which has no price.`,
    'reload.refused': `keeps the former content of a file: ${data.reason}`,
    'person.created': 'signed in for the first time',
    'key.expired': 'has expired',
    'key.expiring': 'expires',
    'webhook.test': 'was sent a test',
  }
  return words[type] ?? verb.replace('updated', 'changed')
}

/** The kind and name of the record that changed. */
function subjectOf(
  type: string,
  { key, account, admin_key, person, webhook, file }: EventData,
): readonly [string, ComponentChildren] {
  if (file !== undefined) return ['The gateway', '']
  if (type === 'prices.updated') return ['Prices', '']
  if (person !== undefined)
    return [
      'Person',
      <Link key="name" to={`/people/${person.id}`}>
        {person.name || person.email || person.id}
      </Link>,
    ]
  if (key !== undefined) return ['Key', <KeyLink key="name" id={key.id} name={key.name} />]
  if (admin_key !== undefined) return ['Admin key', `${admin_key.name} (${admin_key.role})`]
  if (webhook === undefined) return ['Account', account?.name ?? 'default']
  return [
    'Webhook',
    <Link key="name" to={`/webhooks?id=${webhook.id}`}>
      {webhook.url}
    </Link>,
  ]
}

function Changes({ of: changes = {} }: { readonly of: EventData['changes'] }) {
  const named = Object.entries(changes)
  if (named.length === 0) return null
  return (
    <ul class="changes quiet">
      {named.map(([name, change]) => (
        <li key={name}>
          {FIELDS[name] ?? name.replace(/_usd$/, '').replaceAll('_', ' ')}{' '}
          {change.old === null && change.new === null ? (
            'changed'
          ) : (
            <>
              {inText(name, change.old)} → <b>{inText(name, change.new)}</b>
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

const FIELDS: Readonly<Record<string, string>> = {
  monthly_budget_usd: 'budget per month',
  daily_budget_usd: 'budget per day',
  allowed_models: 'models',
  expires_at: 'expiry',
  log_requests: 'logging',
}

function inText(name: string, value: unknown): ComponentChildren {
  if (value === null) return name === 'allowed_models' ? 'all' : 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (typeof value === 'number') return name.endsWith('_usd') ? money(value) : String(value)
  if (typeof value === 'string') return name.endsWith('_at') ? exactTime(value) : value
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value)
}
