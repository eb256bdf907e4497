import type { ComponentChildren } from 'preact'
import type { Key, Person } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { count } from '../format.ts'
import { callsOfMonth } from '../pages/people.tsx'
import { Link, withQuery } from '../router.tsx'
import { CallTable, RefusedCalls } from './call-table.tsx'
import { Id } from './copy.tsx'
import { Budget, Fact, Facts, Money, RelativeTime } from './figures.tsx'
import { SpendCharts } from './spend-charts.tsx'
import { Empty, Loaded } from './states.tsx'
import { nameColumn, Table, timeColumn } from './table.tsx'

interface PersonDetailsProps {
  readonly of: Person
  /** The way to a first key. */
  readonly create?: ComponentChildren
}

/** The budget, the keys and the calls of a person. */
export function PersonDetails({ of: person, create }: PersonDetailsProps) {
  const { person: own } = usePermissions()
  const shown = { person: person.id }
  const keys = useResource('/v1/keys', { ...shown, status: 'usable' }, 5_000)
  const calls = useResource('/gateway/v1/requests', { ...shown, limit: 10 }, 3_000)
  const { daily_budget_usd: daily, requests_per_minute: rate } = person
  return (
    <>
      <Facts>
        <Fact title="This month">
          <Money to={callsOfMonth(person.id)} usd={person.month_spend_usd} />{' '}
          <Budget of={{ ...person, daily_budget_usd: null }} />
        </Fact>
        <Fact
          title="Resets"
          value={person.monthly_budget_usd !== null && <RelativeTime at={person.budget_resets_at} />}
        />
        <Fact
          title="Today"
          value={daily !== null && <Budget of={{ ...person, monthly_budget_usd: null }} />}
        />
        <Fact title="Rate" value={rate !== null && `${count(rate)} requests per minute`} />
        {own?.id !== person.id && (
          <>
            <Fact title="Email" value={<span class="name">{person.email}</span>} />
            <Fact title="Role" value={person.role} />
            <Fact title="First seen" value={<RelativeTime at={person.created_at} />} />
            <Fact title="Id" value={<Id id={person.id} />} />
          </>
        )}
      </Facts>
      <h2>Keys</h2>
      <Loaded resource={keys}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              title="No usable key."
              words="A key or a signed-in device draws on this budget."
              action={create}
            />
          ) : (
            <Table
              caption="Keys"
              rows={data}
              columns={[
                nameColumn<Key>({ name: ({ name }) => name, to: ({ id }) => `/keys/${id}` }),
                timeColumn<Key>('Last used', ({ last_used_at }) => last_used_at),
                timeColumn<Key>('Expires', ({ expires_at }) => expires_at, { lead: 'right' }),
                {
                  title: 'Key',
                  isMinor: true,
                  cell: ({ prefix, last4 }) => <code class="quiet">{`${prefix.slice(0, 12)}…${last4}`}</code>,
                },
              ]}
            />
          )
        }
      </Loaded>
      <SpendCharts asked={shown} by="model" shown={shown} />
      <RefusedCalls filter={shown} />
      <h2>
        Latest calls <Link to={withQuery('/requests', shown)}>All</Link>
      </h2>
      <Loaded resource={calls}>{({ data }) => <CallTable calls={data} />}</Loaded>
    </>
  )
}
