import { useState } from 'preact/hooks'
import { CALL_FLAGS, CALL_STATES } from '../../../src/kernel/vocabulary.ts'
import { usePermissions, useResource } from '../data.ts'
import { count, duration, plural } from '../format.ts'
import { sumUsd } from '../forms/readings.ts'
import { CallTable, callsPath, costOf } from '../parts/call-table.tsx'
import {
  DateRange,
  Download,
  type FilterProps,
  Filters,
  Search,
  Select,
  TextFilter,
  toOptions,
} from '../parts/choices.tsx'
import { KeyLink, Money, PersonLink } from '../parts/figures.tsx'
import { RecordField, type RecordPath } from '../parts/record-field.tsx'
import { Empty, Heading, Loaded } from '../parts/states.tsx'
import { Link, navigate, setQuery } from '../router.tsx'

const ROWS = 100
const FILTERS = [
  'start',
  'end',
  'model',
  'state',
  'flag',
  'status',
  'min_cost_usd',
  'socket',
  'session',
  'parent_id',
  'person',
]

/** Lists calls. The URL has the filters. */
export function RequestsPage({ query }: { readonly query: URLSearchParams }) {
  const { isDeveloper, maySeeAll } = usePermissions()
  const key = query.get('key')
  const after = query.get('after')
  const isLive = query.get('live') !== null && after === null
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]))
  const path = callsPath(key)
  const asked = { ...filters, id: key }
  const calls = useResource(path, { ...asked, limit: ROWS, after }, isLive ? 2_000 : null)
  const set = Object.values(filters).filter((value) => value !== null)
  const isFiltered = key !== null || set.length > 0
  return (
    <>
      <Heading title="Requests">
        <button
          type="button"
          aria-pressed={isLive}
          onClick={() => setQuery({ live: isLive ? null : 1, after: null })}
        >
          {isLive ? 'Live' : 'Follow live'}
        </button>
        <Download path={path} params={asked} name="requests" />
        <Download path={path} params={asked} name="requests" format="ndjson" />
      </Heading>
      <FindById />
      <Filters set={Number(key !== null) + set.length}>
        {!isDeveloper && <RecordFilter title="Key" path="/v1/keys" name="key" query={query} />}
        {maySeeAll && <RecordFilter title="Person" path="/gateway/v1/people" name="person" query={query} />}
        <Select name="state" title="State" options={toOptions(CALL_STATES)} query={query} />
        <Select name="flag" title="Flag" options={toOptions(CALL_FLAGS)} query={query} />
        <TextFilter name="model" title="Model" query={query} />
        <TextFilter name="status" title="HTTP status" query={query} />
        <TextFilter name="min_cost_usd" title="At least, USD" query={query} />
        <DateRange start={filters['start']} end={filters['end']} />
        {isFiltered && (
          <Link to="/requests" class="button">
            Clear all
          </Link>
        )}
      </Filters>
      <SumOf filters={filters} keyId={key} keyName={calls.value?.data[0]?.key_name ?? key ?? ''} />
      <Loaded resource={calls} lines={8}>
        {({ data, next }) =>
          data.length === 0 && isFiltered ? (
            <Empty title="No call matches." action={<Link to="/requests">Show all calls</Link>} />
          ) : data.length === 0 && after === null && !isDeveloper ? (
            <Empty
              title="No call yet."
              words="This page lists calls with model, tokens, cost and duration."
              action={<Link to="/">Make the first call</Link>}
            />
          ) : (
            <CallTable calls={data} isOfOneKey={key !== null || isDeveloper} after={after} next={next} />
          )
        }
      </Loaded>
    </>
  )
}

function FindById() {
  const [id, setId] = useState('')
  const isId = /^[a-z]+_[0-9A-Za-z]{20,}$/.test(id.trim())
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault()
        if (isId) navigate(`/requests/${id.trim()}`)
      }}
    >
      <Search title="Request id" placeholder="Find a request by its id: req_…" value={id} onInput={setId} />
      <button type="submit" disabled={!isId}>
        Open
      </button>
    </form>
  )
}

function RecordFilter({ name, query, ...field }: FilterProps & { readonly path: RecordPath }) {
  const choose = (id: string | null) => setQuery({ [name]: id, after: null })
  return <RecordField {...field} label={field.title} id={query.get(name)} onChoose={choose} />
}

interface SumOfProps {
  readonly filters: Record<string, string | null>
  readonly keyId: string | null
  readonly keyName: string
}

/**
 * The sum of the listed calls. It comes from the usage report, so it is shown only for filters that the report has. After
 * a click on a figure of another page, the sum equals that figure.
 */
function SumOf({ filters, keyId, keyName }: SumOfProps) {
  const { start, end, model, state, person, ...others } = filters
  const { socket, session, parent_id: parent } = others
  const isDays = [start, end].every((day) => day == null || /^\d{4}-\d\d-\d\d$/.test(day))
  const isKnown =
    isDays &&
    (start !== null || end === null) &&
    Object.values(others).every((value) => value === null) &&
    (state === null || state === 'settled')
  const usage = useResource('/v1/usage', isKnown ? { start, end, model, person, key: keyId } : null)
  const total = isKnown ? usage.value?.total : undefined
  return (
    <p class="sum-line" aria-live="polite">
      {keyId !== null && <KeyLink id={keyId} name={keyName} />}{' '}
      {session != null && <SessionSum id={session} keyId={keyId} />}
      {socket != null && <Link to={`/requests/${socket}`}>Calls on one WebSocket</Link>}
      {person != null && <PersonLink id={person} />}{' '}
      {parent != null && <Link to={`/requests/${parent}`}>Parts of one batch</Link>}
      {total !== undefined && (
        <>
          <b>
            <Money usd={total.cost_usd} />
          </b>{' '}
          <span class="quiet">
            in {plural(total.requests, 'settled call')}
            {start == null && end == null ? ' this month' : ''}
          </span>
        </>
      )}
    </p>
  )
}

const READ_MAX = 1_000

/** The calls of one session of an agent: how many, their cost, and how long the session lasts. */
function SessionSum({ id: session, keyId: id }: { readonly id: string; readonly keyId: string | null }) {
  const { value } = useResource(callsPath(id), { id, session, limit: READ_MAX }, 30_000)
  if (value === null || value.data.length === 0) return null
  const { data, has_more: hasMore } = value
  const times = data.flatMap(({ started_at, ended_at }) => [started_at, ended_at ?? started_at])
  const spans = times.map((at) => Date.parse(at))
  return (
    <>
      This session: <b>{hasMore ? `more than ${count(READ_MAX)} calls` : plural(data.length, 'call')}</b>
      {!hasMore && (
        <>
          {' · '}
          <Money usd={sumUsd(data.map(costOf))} /> ·{' '}
          {duration(Math.max(...spans) - Math.min(...spans)).replace(/ 0 s$/, '')}
        </>
      )}
    </>
  )
}
