import type { ComponentChildren } from 'preact'
import { type Call, type Key, type ListOf, send, type Usage } from '../api.ts'
import { useNow, usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, duration, exactTime, inWords, plural } from '../format.ts'
import { go, Link, type Query, setQuery, usePlace, withQuery } from '../router.tsx'
import { Bars, costPerDay } from '../ui/chart.tsx'
import { ConfirmByName, DialogButton } from '../ui/dialog.tsx'
import { Doors, READ_MAX } from '../ui/doors.tsx'
import { Fact, Facts, Metadata } from '../ui/facts.tsx'
import { Budget, Id, Money, Raw, When } from '../ui/figures.tsx'
import { Heading, Show, Tag } from '../ui/states.tsx'
import { KeyForm, RotateForm } from './key-form.tsx'
import { CallTable } from './requests.tsx'

const KEYS = { to: '/keys', title: 'Keys' }

/** Can I revoke this key now? When it was last used, by which client, and the steps of rotating it. */
export function KeyPage({ id }: { readonly id: string }) {
  const key = useResource<Key>(`/v1/keys/${id}`, 3_000)
  const calls = useResource<ListOf<Call>>(`/v1/keys/${id}/requests?limit=10`, 3_000)
  const { mayManage } = usePermissions()
  return (
    <Show resource={key} lines={6} of={KEYS}>
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
                    <When at={value.last_used_at} />
                  </b>
                  {last !== undefined && <LastUse of={last} />}
                </>
              )}
            </p>
            <Rotation of={value} revoke={mayManage && <Revoke of={value} onDone={key.refresh} />} />
            <KeyLimits of={value} />
            <Spend asked={{ key: id }} by="model" shown={{ key: id }} />
            <RefusedCalls path={`/v1/keys/${id}/requests`} keyId={id} />
            <h2>
              Latest calls <Link to={withQuery('/requests', { key: id })}>All</Link>
            </h2>
            <Show resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Show>
            <Raw of={value} />
          </>
        )
      }}
    </Show>
  )
}

interface ActionProps {
  readonly of: Key
  onDone(): void
}

function KeyActions({ of: key, onDone }: ActionProps) {
  function showRotation({ id: successor }: Key): void {
    onDone()
    go(withQuery(`/keys/${key.id}`, { successor }))
  }
  return (
    <>
      <DialogButton title="Change limits" onDone={onDone}>
        {(ends) => <KeyForm edited={key} {...ends} />}
      </DialogButton>
      <DialogButton title="Rotate" onDone={showRotation}>
        {(ends) => <RotateForm of={key} {...ends} />}
      </DialogButton>
      <Revoke of={key} onDone={onDone} title="Revoke" />
    </>
  )
}

function Revoke({ of: { id, name }, onDone, title }: ActionProps & { readonly title?: string }) {
  return (
    <DialogButton title={title ?? 'Revoke the old key'} kind="danger" onDone={onDone}>
      {(ends) => (
        <ConfirmByName
          title="Revoke this key"
          name={name}
          submit="Revoke"
          {...ends}
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
  const month = `${dayOf(Date.now()).slice(0, 8)}01`
  const { daily_budget_usd: daily } = value
  const own = useResource<Usage>(withQuery('/v1/usage', { start: month, key: value.id }), 10_000).value?.total
  const isShared = own !== undefined && own.cost_usd !== value.month_spend_usd
  const ownCalls = own !== undefined && (
    <>
      <Money
        to={withQuery('/requests', { key: isDeveloper ? null : value.id, start: month })}
        usd={own.cost_usd}
      />{' '}
      <span class="quiet">in {plural(own.requests, 'call')}</span>
    </>
  )
  return (
    <Facts>
      <Fact title="This month">
        {isShared ? <Money usd={value.month_spend_usd} /> : ownCalls}{' '}
        <Budget of={{ ...value, daily_budget_usd: null }} />
        {value.month_waiting > 0 && (
          <Tag kind="high">{count(value.month_waiting)} wait for room under the cap</Tag>
        )}
        {value.month_lost_usd > 0 && (
          <Tag kind="high">
            up to <Money usd={value.month_lost_usd} /> of calls were lost in a crash
          </Tag>
        )}
      </Fact>
      <Fact title="Resets" value={<When at={value.budget_resets_at} />} />
      {isShared && <Fact title="Its own calls" value={ownCalls} />}
      {daily !== null && (
        <Fact title="Today">
          <Budget of={{ ...value, monthly_budget_usd: null }} />
        </Fact>
      )}
      {value.requests_per_minute !== null && (
        <Fact title="Rate">{count(value.requests_per_minute)} requests per minute</Fact>
      )}
      {value.budget_mode !== null && <Fact title="Budget mode" value={value.budget_mode} />}
      <Metadata of={value.metadata} />
      <Fact
        title="Models"
        value={value.allowed_models === null ? 'all' : <code>{value.allowed_models.join(', ')}</code>}
      />
      <Fact title="Expires" value={<When at={value.expires_at} />} />
      <Fact
        title="Request log"
        value={value.log_requests ? 'Logging on: bodies are stored' : 'Logging off'}
      />
      <Fact title="Created">
        <When at={value.created_at} />
        {value.rotated_from !== null && !isDeveloper && (
          <>
            {' in place of '}
            <Link to={`/keys/${value.rotated_from}`}>an earlier key</Link>
          </>
        )}
      </Fact>
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
 * Rotating a key, in steps that can be left and taken up again: the successor and how long the old key has to be quiet
 * are in the URL. No step is refused; the page only warns.
 */
function Rotation({ of: key, revoke }: { readonly of: Key; readonly revoke: ComponentChildren }) {
  const { query } = usePlace()
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
      <Step title="The new key is created" isDone>
        <Link to={`/keys/${successorId}`}>{successor.value?.name ?? 'the new key'}</Link>
      </Step>
      <Step title="It is deployed" isDone={used !== null}>
        {used === null
          ? 'It has not been used yet.'
          : `First seen, last used ${inWords(Date.parse(used), now)}`}
      </Step>
      <Step title="The old key is quiet" isDone={isQuiet}>
        <span>{usedMs === null ? 'Never used' : `Last used ${inWords(now - usedMs, now)}`}</span>
        <label>
          Quiet is{' '}
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
      <Step title="The old key is revoked" isDone={key.status !== 'usable'}>
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

interface SpendProps {
  /** The filter of the report. */
  readonly asked: Query
  /** The dimension that is listed beside the chart. */
  readonly by: 'model' | 'key'
  /** The same filter on pages. */
  readonly shown: Query
}

/** Thirty days of spend, by day and by model or key, with links to the calls. */
export function Spend({ asked, by, shown }: SpendProps) {
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
      <Bars
        title="Cost per day, 30 days"
        {...costPerDay(start, end, days.value.data)}
        onPick={(day) => go(callsOf({ start: day, end: day }))}
        onBrush={(from, to) => go(callsOf({ start: from, end: to }))}
      />
      <Doors
        title={by === 'model' ? 'Models, 30 days' : 'Keys, 30 days'}
        by={by}
        of={shares}
        max={8}
        // The report has no filter by key.
        all={shown['key'] == null ? withQuery('/usage', { ...shown, start, end, by }) : null}
        toOf={({ key, model }) => callsOf(by === 'model' ? { model } : { key })}
      />
    </div>
  )
}
