import type { EventData } from '../../../src/api/event-payload.ts'
import { type Call, type Key, send } from '../api.ts'
import { useOwner, usePermissions, useResource } from '../data.ts'
import { addDays, dayAndMonth, dayOf, exactTime, monthInWords } from '../format.ts'
import { sumUsd } from '../forms/readings.ts'
import { CallTable, RefusedCalls } from '../parts/call-table.tsx'
import { JsonDetails } from '../parts/copy.tsx'
import { DangerButton, DialogButton } from '../parts/dialog.tsx'
import { Figure, RelativeTime } from '../parts/figures.tsx'
import { KeyLimits } from '../parts/key-limits.tsx'
import { SpendCharts } from '../parts/spend-charts.tsx'
import { Heading, Loaded, Tag } from '../parts/states.tsx'
import { Table, usdColumn } from '../parts/table.tsx'
import { Link, navigate, withQuery } from '../router.tsx'
import { KeyForm } from './key-form.tsx'
import { OwnKeyForm } from './me.tsx'
import { RotateForm, Rotation } from './rotation.tsx'

const KEYS = { to: '/keys', title: 'Keys' }
const MINE = { to: '/me', title: 'My keys' }

/** Shows whether a key can be revoked: its last use and client, and the steps of a rotation. */
export function KeyPage({ id }: { readonly id: string }) {
  const key = useResource('/v1/keys/{id}', { id }, 3_000)
  const calls = useResource('/v1/keys/{id}/requests', { id, limit: 10 }, 3_000)
  const { mayManage, maySeeAll, person } = usePermissions()
  useOwner(key.value?.account_id)
  return (
    <Loaded resource={key} lines={6} of={KEYS}>
      {(value) => {
        const isUsable = value.status === 'usable'
        const isOwn = person !== null && value.person_id === person.id
        const mayChange = isUsable && (mayManage || isOwn)
        const last = calls.value?.data[0]
        return (
          <>
            <Heading
              of={isOwn && !mayManage ? MINE : KEYS}
              title={value.name}
              state={!isUsable && <Tag kind="bad">{value.status}</Tag>}
            >
              {mayChange && <KeyActions of={value} mayManage={mayManage} onDone={key.refresh} />}
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
            <Rotation of={value} revoke={mayChange && <Revoke of={value} onDone={key.refresh} />} />
            <KeyLimits of={value} />
            <SpendCharts asked={{ key: id }} by="model" shown={{ key: id }} />
            <RefusedCalls filter={{ key: id }} />
            <h2>
              Latest calls <Link to={withQuery('/requests', { key: id })}>All</Link>
            </h2>
            <Loaded resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Loaded>
            {maySeeAll && <BudgetHistory of={value} />}
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

function KeyActions({ of: key, mayManage, onDone }: ActionProps & { readonly mayManage: boolean }) {
  function showRotation({ id: successor }: Key): void {
    onDone()
    navigate(withQuery(`/keys/${key.id}`, { successor }))
  }
  return (
    <>
      <DialogButton title={mayManage ? 'Change limits' : 'Rename'} onDone={onDone}>
        {(callbacks) =>
          mayManage ? <KeyForm edited={key} {...callbacks} /> : <OwnKeyForm edited={key} {...callbacks} />
        }
      </DialogButton>
      <DialogButton title="Rotate" onDone={showRotation}>
        {(callbacks) => <RotateForm of={key} {...callbacks} />}
      </DialogButton>
      <Revoke of={key} onDone={onDone} title="Revoke" />
    </>
  )
}

export function Revoke({ of: { id, name }, onDone, title }: ActionProps & { readonly title?: string }) {
  return (
    <DangerButton
      verb="Revoke"
      noun="this key"
      name={name}
      title={title ?? 'Revoke the old key'}
      run={() => send('POST /v1/keys/{id}/revoke', { id })}
      onDone={onDone}
    >
      Every new call with it gets 401, on all nodes. Running streams finish. This cannot be undone.
    </DangerButton>
  )
}

const LastUse = ({ of: { user_agent, client_ip, id } }: { readonly of: Call }) => (
  <>
    {' '}
    by <b class="name">{user_agent ?? 'an unknown client'}</b>
    {client_ip !== null && (
      <>
        {' '}
        from <code>{client_ip}</code>
      </>
    )}
    . <Link to={`/requests/${id}`}>View request</Link>
  </>
)

const MONTHS = 12

interface Crossing {
  readonly at: string
  /** 100: the budget was spent. */
  readonly percent: number
}

interface Month {
  readonly id: string
  readonly usd: number
  readonly crossings: readonly Crossing[]
}

/** The crossings of monthly budgets by calls of the key. The actor of a crossing is the key of its call. */
function useCrossings(keyId: string): readonly Crossing[] {
  const asked = { actor: keyId, limit: 100 }
  const path = '/gateway/v1/events'
  const thresholds = useResource(path, { ...asked, type: 'key.budget.threshold' }, 60_000)
  const exceeded = useResource(path, { ...asked, type: 'key.budget.exceeded' }, 60_000)
  return [...(thresholds.value?.data ?? []), ...(exceeded.value?.data ?? [])]
    .map(({ created_at: at, data }): EventData & { readonly at: string } => ({ at, ...data }))
    .filter(({ period }) => period === 'month')
    .map(({ at, threshold_percent: percent = 100 }) => ({ at, percent }))
    .sort((a, b) => a.at.localeCompare(b.at) || a.percent - b.percent)
}

/** What the key spent in each month, and on which days it crossed the thresholds of its budget. */
export function BudgetHistory({ of: key }: { readonly of: Key }) {
  const today = dayOf(Date.now())
  const firstOf = (back: number) => {
    const [year = 0, month = 1] = today.split('-').map(Number)
    return dayOf(Date.UTC(year, month - 1 - back, 1))
  }
  const start = firstOf(MONTHS - 1)
  const asked = { key: key.id, start, end: today, group_by: 'day', limit: 400 }
  const usage = useResource('/v1/usage', asked, 60_000)
  const crossings = useCrossings(key.id)
  const days = usage.value?.data ?? []
  const months = Array.from({ length: MONTHS }, (_, back): Month => {
    const id = firstOf(back).slice(0, 7)
    const isIn = (at = '') => at.startsWith(id)
    return {
      id,
      usd: sumUsd(days.filter(({ day }) => isIn(day)).map(({ cost_usd }) => cost_usd)),
      crossings: crossings.filter(({ at }) => isIn(at)),
    }
  })
  const used = months.filter(({ usd, crossings }) => usd > 0 || crossings.length > 0)
  // One month is on the page already.
  if (used.length < 2 && crossings.length === 0) return null
  return (
    <>
      <h2>Months</h2>
      <Table
        caption="Months"
        rows={used}
        columns={[
          { title: 'Month', lead: 'left', cell: ({ id }) => monthInWords(`${id}-01`) },
          { title: 'Crossed its budget', isWide: true, cell: (month) => <Crossings of={month} /> },
          usdColumn<Month>('Spent, USD', ({ usd }) => usd, {
            lead: 'right',
            cell: ({ id, usd }) => <Figure usd={usd} to={callsOf(key, id)} />,
          }),
        ]}
      />
    </>
  )
}

function callsOf({ id: key }: Key, month: string): string {
  const start = `${month}-01`
  const end = addDays(`${addDays(start, 31).slice(0, 8)}01`, -1)
  return withQuery('/requests', { key, start, end })
}

function Crossings({ of: { crossings } }: { readonly of: Month }) {
  if (crossings.length === 0) return <span class="quiet">–</span>
  return (
    <span class="words">
      {crossings.map(({ at, percent }, i) => (
        <span key={at + percent} class={percent === 100 ? 'bad' : percent >= 80 ? 'high' : undefined}>
          {i > 0 && ' · '}
          {percent === 100 ? 'spent' : `${percent}%`} on{' '}
          <time dateTime={at} title={exactTime(at)}>
            {dayAndMonth(at)}
          </time>
        </span>
      ))}
    </span>
  )
}
