import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { type Call, type Key, type ListOf, send, type Usage } from '../api.ts'
import { useNow, usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, duration, exactTime, plural, relativeTime } from '../format.ts'
import { Link, navigate, type Query, setQuery, useRoute, withQuery } from '../router.tsx'
import { BarChart, costPerDay } from '../ui/chart.tsx'
import { ConfirmByName, DialogButton } from '../ui/dialog.tsx'
import { Fact, Facts, Metadata } from '../ui/facts.tsx'
import { Budget, Id, JsonDetails, Money, RelativeTime } from '../ui/figures.tsx'
import { Ranking, READ_MAX } from '../ui/ranking.tsx'
import { Heading, Loaded, Tag } from '../ui/states.tsx'
import { KeyForm, RotateForm } from './key-form.tsx'
import { CallTable } from './requests.tsx'

const KEYS = { to: '/keys', title: 'Keys' }

/** Shows whether a key can be revoked: its last use and client, and the steps of a rotation. */
export function KeyPage({ id }: { readonly id: string }) {
  const key = useResource<Key>(`/v1/keys/${id}`, 3_000)
  const calls = useResource<ListOf<Call>>(`/v1/keys/${id}/requests?limit=10`, 3_000)
  const { isOperator, mayManage } = usePermissions()
  const shown = useRoute().query.get('account') ?? 'default'
  const owner = key.value?.account_id ?? shown
  // An operator may open a key of another account. Its charts and links must act in that account.
  useEffect(() => {
    if (isOperator && owner !== shown) setQuery({ account: owner === 'default' ? null : owner }, 'replace')
  }, [isOperator, owner, shown])
  return (
    <Loaded resource={key} lines={6} of={KEYS}>
      {(value) => {
        const isUsable = value.status === 'usable'
        const mayChange = isUsable && mayManage
        const last = calls.value?.data[0]
        return (
          <>
            <Heading of={KEYS} title={value.name} state={!isUsable && <Tag kind="bad">{value.status}</Tag>}>
              {mayChange && <KeyActions of={value} onDone={key.refresh} />}
            </Heading>
            <p class="lead">
              {value.last_used_at === null ? (
                'Never used.'
              ) : (
                <>
                  Last used{' '}
                  <b>
                    <RelativeTime at={value.last_used_at} />
                  </b>
                  {last !== undefined && <LastUse of={last} />}
                </>
              )}
            </p>
            <Rotation of={value} revoke={mayManage && <Revoke of={value} onDone={key.refresh} />} />
            <KeyLimits of={value} />
            <SpendCharts asked={{ key: id }} by="model" shown={{ key: id }} />
            <RefusedCalls path={`/v1/keys/${id}/requests`} keyId={id} />
            <h2>
              Latest calls <Link to={withQuery('/requests', { key: id })}>All</Link>
            </h2>
            <Loaded resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Loaded>
            <JsonDetails of={value} />
          </>
        )
      }}
    </Loaded>
  )
}

interface ActionProps {
  readonly of: Key
  onDone(): void
}

function KeyActions({ of: key, onDone }: ActionProps) {
  function showRotation({ id: successor }: Key): void {
    onDone()
    navigate(withQuery(`/keys/${key.id}`, { successor }))
  }
  return (
    <>
      <DialogButton title="Change limits" onDone={onDone}>
        {(callbacks) => <KeyForm edited={key} {...callbacks} />}
      </DialogButton>
      <DialogButton title="Rotate" onDone={showRotation}>
        {(callbacks) => <RotateForm of={key} {...callbacks} />}
      </DialogButton>
      <Revoke of={key} onDone={onDone} title="Revoke" />
    </>
  )
}

function Revoke({ of: { id, name }, onDone, title }: ActionProps & { readonly title?: string }) {
  return (
    <DialogButton title={title ?? 'Revoke the old key'} kind="danger" onDone={onDone}>
      {(callbacks) => (
        <ConfirmByName
          title="Revoke this key"
          name={name}
          submit="Revoke"
          {...callbacks}
          onSubmit={() => send('POST', `/v1/keys/${id}/revoke`)}
        >
          <p>Every new call with it gets 401, on all nodes. Running streams finish. This cannot be undone.</p>
        </ConfirmByName>
      )}
    </DialogButton>
  )
}

export function RefusedCalls({ path, keyId }: { readonly path: string; readonly keyId: string | null }) {
  const { value } = useResource<ListOf<Call>>(`${path}?state=refused&limit=5`, 10_000)
  if (value === null || value.data.length === 0) return null
  return (
    <>
      <h2>
        Refused calls <Link to={withQuery('/requests', { key: keyId, state: 'refused' })}>All</Link>
      </h2>
      <CallTable calls={value.data} isOfOneKey caption="Refused calls" />
    </>
  )
}

export function KeyLimits({ of: value }: { readonly of: Key }) {
  const { isDeveloper } = usePermissions()
  const start = `${dayOf(Date.now()).slice(0, 8)}01`
  const ofKey = { start, key: isDeveloper ? null : value.id }
  const { daily_budget_usd: daily, monthly_budget_usd: monthly, requests_per_minute: rate } = value
  const { rotated_from: old } = value
  const tomorrow = `${addDays(dayOf(Date.now()), 1)}T00:00:00Z`
  const resetsAt = monthly !== null ? value.budget_resets_at : daily !== null ? tomorrow : null
  const own = useResource<Usage>(withQuery('/v1/usage', ofKey), 10_000).value?.total
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
      <Fact title="Key" value={<code>{`${value.prefix}…${value.last4}`}</code>} />
      <Fact title="Id" value={<Id id={value.id} />} />
    </Facts>
  )
}

const LastUse = ({ of: { user_agent, client_ip, id } }: { readonly of: Call }) => (
  <>
    {' '}
    by <b class="name">{user_agent ?? 'an unknown client'}</b> from <code>{client_ip}</code>.{' '}
    <Link to={`/requests/${id}`}>View request</Link>
  </>
)

const QUIET_CHOICES_MS = [60_000, 3_600_000, 86_400_000, 7 * 86_400_000]

/**
 * The steps of a rotation. The URL stores the successor, and how long the old key must be unused, so that a user can leave
 * the page and continue later. The page warns, but refuses no step.
 */
function Rotation({ of: key, revoke }: { readonly of: Key; readonly revoke: ComponentChildren }) {
  const { query } = useRoute()
  const now = useNow(1_000)
  const successorId = query.get('successor')
  const successor = useResource<Key>(successorId === null ? null : `/v1/keys/${successorId}`, 3_000)
  if (successorId === null) return null
  const quietMs = Number(query.get('quiet') ?? 3_600_000)
  const usedMs = key.last_used_at === null ? null : now - Date.parse(key.last_used_at)
  const isQuiet = usedMs === null || usedMs >= quietMs
  const used = successor.value?.last_used_at ?? null
  return (
    <ol class="steps" aria-label="Rotating this key">
      <Step title="Create the new key" isDone>
        <Link to={`/keys/${successorId}`}>{successor.value?.name ?? 'the new key'}</Link>
      </Step>
      <Step title="Deploy the new key" isDone={used !== null}>
        {used === null
          ? 'It has not been used yet.'
          : `First seen, last used ${relativeTime(Date.parse(used), now)}`}
      </Step>
      <Step title="Wait until the old key is unused" isDone={isQuiet}>
        <span>{usedMs === null ? 'Never used' : `Last used ${relativeTime(now - usedMs, now)}`}</span>
        <label>
          Unused for{' '}
          <select
            value={quietMs}
            onChange={(event) => setQuery({ quiet: event.currentTarget.value }, 'replace')}
          >
            {QUIET_CHOICES_MS.map((ms) => (
              <option key={ms} value={ms}>
                {ms === 3_600_000 ? '1 hour' : duration(ms).replace(' 0 s', '')}
              </option>
            ))}
          </select>
        </label>
      </Step>
      <Step title="Revoke the old key" isDone={key.status !== 'usable'}>
        {key.status === 'usable' ? revoke : 'Done.'}
        {key.status === 'usable' && !isQuiet && <span class="high">Something still uses it.</span>}
      </Step>
    </ol>
  )
}

interface StepProps {
  readonly title: string
  readonly isDone: boolean
  readonly children: ComponentChildren
}

function Step({ title, isDone, children }: StepProps) {
  return (
    <li class={isDone ? 'done' : undefined}>
      <b>{title}</b>
      <span>{children}</span>
    </li>
  )
}

interface SpendChartsProps {
  /** The filter of the usage report. */
  readonly asked: Query
  /** The dimension of the list beside the chart. */
  readonly by: 'model' | 'key'
  /** The same filter, as parameters of pages. */
  readonly shown: Query
}

/** The spend of thirty days, by day and by model or key, with links to the calls. */
export function SpendCharts({ asked, by, shown }: SpendChartsProps) {
  const end = dayOf(Date.now())
  const start = addDays(end, -29)
  const read = (group_by: string) =>
    withQuery('/v1/usage', { ...asked, start, end, group_by, limit: READ_MAX })
  const days = useResource<Usage>(read('day'), 15_000)
  const { value: shares } = useResource<Usage>(read(by), 15_000)
  if (days.value === null || shares === null || shares.data.length === 0) return null
  const callsOf = (query: Query) => withQuery('/requests', { ...shown, start, end, ...query })
  return (
    <div class="beside">
      <BarChart
        title="Cost per day, 30 days"
        {...costPerDay(start, end, days.value.data)}
        onPick={(day) => navigate(callsOf({ start: day, end: day }))}
        onBrush={(from, to) => navigate(callsOf({ start: from, end: to }))}
      />
      <Ranking
        title={by === 'model' ? 'Models, 30 days' : 'Keys, 30 days'}
        by={by}
        of={shares}
        max={8}
        // The page Usage has no filter by key.
        all={shown['key'] == null ? withQuery('/usage', { ...shown, start, end, by }) : null}
        toOf={({ key, model }) => callsOf(by === 'model' ? { model } : { key })}
      />
    </div>
  )
}
