import type { Key } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, exactTime, plural } from '../format.ts'
import { Link, withQuery } from '../router.tsx'
import { Id } from './copy.tsx'
import { Budget, Fact, Facts, Metadata, Money, PersonLink, RelativeTime } from './figures.tsx'
import { Tag } from './states.tsx'

export function KeyLimits({ of: value }: { readonly of: Key }) {
  const { isDeveloper, maySeeAll } = usePermissions()
  const start = `${dayOf(Date.now()).slice(0, 8)}01`
  const ofKey = { start, key: isDeveloper ? null : value.id }
  const { daily_budget_usd: daily, monthly_budget_usd: monthly, requests_per_minute: rate } = value
  const { rotated_from: old, person_id: person } = value
  const tomorrow = `${addDays(dayOf(Date.now()), 1)}T00:00:00Z`
  const resetsAt = monthly !== null ? value.budget_resets_at : daily !== null ? tomorrow : null
  const own = useResource('/v1/usage', ofKey, 10_000).value?.total
  const isShared = own !== undefined && own.cost_usd !== value.month_spend_usd
  const ownCalls = own !== undefined && (
    <>
      <Money to={withQuery('/requests', ofKey)} usd={own.cost_usd} />{' '}
      <span class="quiet">in {plural(own.requests, 'call')}</span>
    </>
  )
  return (
    <Facts>
      <Fact title="This month">
        {isShared ? <Money usd={value.month_spend_usd} /> : ownCalls}{' '}
        <Budget of={{ ...value, daily_budget_usd: null }} />
        {value.month_waiting > 0 && (
          <Tag kind="high">{count(value.month_waiting)} waiting for the budget</Tag>
        )}
        {value.month_lost_usd > 0 && (
          <Tag kind="high">
            up to <Money usd={value.month_lost_usd} /> lost in a crash
          </Tag>
        )}
      </Fact>
      <Fact title="Resets" value={resetsAt && <RelativeTime at={resetsAt} />} />
      {isShared && <Fact title="Its own calls" value={ownCalls} />}
      <Fact title="Today" value={daily !== null && <Budget of={{ ...value, monthly_budget_usd: null }} />} />
      <Fact title="Rate" value={rate !== null && `${count(rate)} requests per minute`} />
      <Fact title="Budget mode" value={value.budget_mode} />
      <Metadata of={value.metadata} />
      <Fact
        title="Models"
        value={value.allowed_models === null ? 'all' : <code>{value.allowed_models.join(', ')}</code>}
      />
      <Fact title="Expires" value={<RelativeTime at={value.expires_at} />} />
      <Fact
        title="Request log"
        value={value.log_requests ? 'Logging on: bodies are stored' : 'Logging off'}
      />
      <Fact title="Created" value={<RelativeTime at={value.created_at} />} />
      <Fact
        title="Rotated from"
        value={old !== null && !isDeveloper && <Link to={`/keys/${old}`}>an earlier key</Link>}
      />
      {value.revoked_at !== null && <Fact title="Revoked" value={exactTime(value.revoked_at)} />}
      <Fact title="Person" value={person !== null && maySeeAll && <PersonLink id={person} />} />
      <Fact title="Key" value={<code>{`${value.prefix}…${value.last4}`}</code>} />
      <Fact title="Id" value={<Id id={value.id} />} />
    </Facts>
  )
}
