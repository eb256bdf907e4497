import { useState } from 'preact/hooks'
import { type Bucket, type Call, type ListOf, type NewKey, type Overview, send, type Usage } from '../api.ts'
import { type OwnAccount, useAccount, useCommand, usePermissions, useResource } from '../data.ts'
import {
  addDays,
  count,
  dayAndMonth,
  dayOf,
  daysBetween,
  money,
  monthInWords,
  percent,
  plural,
  weekday,
} from '../format.ts'
import { go, Link, withQuery } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { Bars, daySlots } from '../ui/chart.tsx'
import { ClientSetup } from '../ui/clients.tsx'
import { Sum } from '../ui/facts.tsx'
import { AccountLine, Money, MoneyLink, tightestOf, When } from '../ui/figures.tsx'
import { Failure, Heading, Show } from '../ui/states.tsx'
import { RefusedCalls } from './key.tsx'
import { CallTable } from './requests.tsx'

/** Is everything all right, and what is it costing me? */
export function OverviewPage() {
  const today = dayOf(Date.now())
  // The bar of a day would be less than a pixel wide on a phone if the chart had a year.
  const isNarrow = innerWidth < 640
  const start = addDays(today, isNarrow ? -83 : -364)
  const month = `${today.slice(0, 8)}01`
  const overview = useResource<Overview>('/gateway/v1/overview', 3_000)
  const year = useResource<Usage>(withQuery('/v1/usage', { start, end: today, group_by: 'day' }), 15_000)
  const latest = useResource<ListOf<Call>>('/gateway/v1/requests?limit=8', 3_000)
  if (latest.value?.data.length === 0) return <FirstRun />
  return (
    <>
      <Heading title="Overview" />
      <AccountLine hasBudget />
      <Show resource={overview} lines={3}>
        {(value) => (
          <>
            <Sums of={value} days={year.value?.data ?? null} today={today} month={month} />
            <div class="thirds">
              <NeedsAttention of={value} />
              <Top by="key" start={month} end={today} />
              <Top by="model" start={month} end={today} />
            </div>
          </>
        )}
      </Show>
      <Show resource={year} lines={5}>
        {({ data }) => (
          <Bars
            title={isNarrow ? 'Cost per day, 12 weeks' : 'Cost per day, a year. Click a day or drag a range.'}
            slots={daySlots(start, today, data)}
            series={[{ name: 'Cost' }]}
            onPick={(day) => go(withQuery('/usage', { start: day, end: day }))}
            onBrush={(from, to) => go(withQuery('/usage', { start: from, end: to }))}
          />
        )}
      </Show>
      <h2>
        Latest calls <Link to="/requests?live=1">Follow live</Link>
      </h2>
      <Show resource={latest}>{({ data }) => <CallTable calls={data} without={null} />}</Show>
    </>
  )
}

interface SumsProps {
  readonly of: Overview
  readonly days: readonly Bucket[] | null
  readonly today: string
  readonly month: string
}

function Sums({ of: value, days, today, month }: SumsProps) {
  const { balance } = value
  const isPrepaid = balance.enforced || balance.credited_usd !== 0
  return (
    <ul class="sums">
      <Sum
        title={monthInWords(month)}
        value={<MoneyLink to={withQuery('/requests', { start: month, end: today })} usd={value.cost_usd} />}
        note={<Compared days={days} of={value} today={today} month={month} />}
      />
      <Sum
        title="Forecast for the month"
        value={days === null ? '–' : <Money usd={value.cost_usd + restOfMonth(days, today)} />}
        note="based on the last 4 weeks"
      />
      <Sum
        title="Saved against list price"
        value={<MoneyLink to={withQuery('/usage', { start: month, end: today })} usd={value.savings_usd} />}
        note={`${percent(value.savings_usd, value.list_cost_usd)} of the list price`}
      />
      <Sum
        title="Credit left"
        value={isPrepaid ? <MoneyLink to="/credits" usd={balance.balance_usd} /> : '–'}
        note={
          balance.enforced
            ? `${money(balance.held_usd)} reserved`
            : isPrepaid
              ? 'not enforced'
              : 'not prepaid'
        }
      />
      <Sum
        title="In flight"
        value={<Link to="/requests?state=in_flight">{count(value.calls_in_flight)}</Link>}
        note={
          value.calls_waiting > 0 ? (
            <Link to="/requests?state=waiting">{plural(value.calls_waiting, 'call')} waiting</Link>
          ) : (
            `${plural(value.requests, 'call')} this month`
          )
        }
      />
    </ul>
  )
}

/** Rounded to nanodollars, as sums of the API are. */
const sumOf = (days: readonly Bucket[], from: string, to: string) =>
  Number(
    days
      .reduce((sum, { day = '', cost_usd }) => (day >= from && day <= to ? sum + cost_usd : sum), 0)
      .toFixed(9),
  )

/** The month to date beside the same days of the month before. */
function Compared({ days, of: { cost_usd: cost }, today, month }: SumsProps) {
  if (days === null) return <>&nbsp;</>
  const lastOfBefore = addDays(month, -1)
  const from = `${lastOfBefore.slice(0, 8)}01`
  const same = `${lastOfBefore.slice(0, 8)}${today.slice(8)}`
  const to = same < lastOfBefore ? same : lastOfBefore
  const before = sumOf(days, from, to)
  if (before === 0) return <>no spend on the same days last month</>
  const change = cost >= before ? `+${percent(cost - before, before)}` : `−${percent(before - cost, before)}`
  return (
    <>
      {change} against 1 to {dayAndMonth(to)},{' '}
      <MoneyLink to={withQuery('/usage', { start: from, end: to })} usd={before} />
    </>
  )
}

/** Each day that is left is expected to cost as its weekday did in the last four weeks. */
function restOfMonth(days: readonly Bucket[], today: string): number {
  const costs = new Map(days.map(({ day = '', cost_usd }) => [day, cost_usd]))
  const weeks = daysBetween(addDays(today, -28), addDays(today, -1))
  const first = days[0]?.day ?? today
  const meanOf = (name: string) => {
    const same = weeks.filter((day) => day >= first && weekday(day) === name)
    return same.length === 0 ? 0 : same.reduce((sum, day) => sum + (costs.get(day) ?? 0), 0) / same.length
  }
  const next = new Date(today)
  const end = dayOf(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0))
  const left = end > today ? daysBetween(addDays(today, 1), end) : []
  const restOfToday = Math.max(0, meanOf(weekday(today)) - (costs.get(today) ?? 0))
  return left.reduce((sum, day) => sum + meanOf(weekday(day)), restOfToday)
}

const TOP = 5
const READ_MAX = 2_000

interface TopProps {
  readonly by: 'key' | 'model'
  readonly start: string
  readonly end: string
}

/** The keys or models that cost most this month. */
function Top({ by, start, end }: TopProps) {
  const path = withQuery('/v1/usage', { start, end, group_by: by, limit: READ_MAX })
  const { value } = useResource<Usage>(path, 60_000)
  const title = by === 'key' ? 'Top keys' : 'Top models'
  const top = (value?.data ?? []).toSorted((a, b) => b.cost_usd - a.cost_usd).slice(0, TOP)
  const most = top[0]?.cost_usd ?? 0
  return (
    <section aria-label={title}>
      <h2>
        {title} <Link to={`/usage?by=${by}`}>All</Link>
      </h2>
      {value?.has_more && <p class="quiet">More than {count(READ_MAX)}: Usage has all of them.</p>}
      <ul class="doors">
        {(value?.has_more ? [] : top).map(({ key, key_name, model = '', cost_usd }) => (
          <li key={key ?? model}>
            <Link
              to={by === 'key' ? `/keys/${key}` : withQuery('/requests', { start, end, model: model ?? '' })}
            >
              <span class="name">{by === 'key' ? (key_name ?? key) : model || 'no model'}</span>
              <span class="bar">
                <span class="spent" style={{ width: `${most === 0 ? 0 : (cost_usd / most) * 100}%` }} />
              </span>
              <Money usd={cost_usd} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Notice {
  readonly to: string
  readonly title: preact.ComponentChildren
  readonly kind: 'bad' | 'high'
}

/** The findings that a person should act on, the gravest first. Empty on a good day. */
function noticesOf({ attention }: Overview, account: OwnAccount | null): readonly Notice[] {
  const { keys_exhausted, keys_near_cap, keys_expiring, unpriced_models, refusals } = attention
  const { webhooks_disabled: disabled, webhooks_failed_deliveries: failed } = attention
  const ofKey = (
    kind: Notice['kind'],
    { id, name }: { readonly id: string; readonly name: string },
    words: preact.ComponentChildren,
  ): Notice => ({ kind, to: `/keys/${id}`, title: <Of name={name}>{words}</Of> })
  const more = ({ count: all, data }: { count: number; data: readonly unknown[] }, words: string) =>
    when(all > data.length, 'high', '/keys', `${count(all - data.length)} more keys ${words}`)
  const budgetOf = (period: 'month' | 'day') => (period === 'day' ? 'budget of the day' : 'budget')
  return [
    ...(account === null ? [] : accountNoticesOf(account)),
    ...keys_exhausted.data.map((key) => ofKey('bad', key, `has spent its ${budgetOf(key.period)}`)),
    ...more(keys_exhausted, 'have spent their budget'),
    ...unpriced_models.map(
      ({ model, requests }): Notice => ({
        kind: 'bad',
        to: withQuery('/requests', { flag: 'unpriced', model }),
        title: <Of name={model}>has no price: {plural(requests, 'call')} in 7 days</Of>,
      }),
    ),
    ...when(disabled > 0, 'bad', '/webhooks', `${plural(disabled, 'webhook')} turned off`),
    ...when(failed > 0, 'bad', '/webhooks', `${plural(failed, 'delivery', 'deliveries')} failed`),
    ...keys_near_cap.data.map((key) =>
      ofKey('high', key, `is at ${key.percent}% of its ${budgetOf(key.period)}`),
    ),
    ...more(keys_near_cap, 'are near their budget'),
    ...keys_expiring.data.map((key) =>
      ofKey(
        'high',
        key,
        <>
          expires <When at={key.expires_at} />
        </>,
      ),
    ),
    ...more(keys_expiring, 'expire within a week'),
    ...refusals.map(
      ({ code, calls }): Notice => ({
        kind: 'high',
        to: withQuery('/requests', { state: 'refused', start: addDays(dayOf(Date.now()), -1) }),
        title: (
          <>
            {plural(calls, 'call')} refused with <code>{code}</code> in 24 h
          </>
        ),
      }),
    ),
  ]
}

/** The account's own ceiling and credit: they stop all of its keys. */
function accountNoticesOf(account: OwnAccount): readonly Notice[] {
  const { cap, share } = tightestOf(account)
  const isSpent = cap !== null && (share >= 1 || cap === 0)
  const isNear = !isSpent && share >= 0.8
  const isOut = account.credit_enforced && account.balance_usd <= 0
  const of = (words: string) => <Of name={account.name}>{words}</Of>
  return [
    ...when(isSpent, 'bad', '/settings', of('has spent its budget')),
    ...when(isOut, 'bad', '/credits', of('has no credit left')),
    ...when(isNear, 'high', '/settings', of(`is at ${percent(share, 1)} of its budget`)),
  ]
}

const when = (is: boolean, kind: Notice['kind'], to: string, title: Notice['title']): readonly Notice[] =>
  is ? [{ kind, to, title }] : []

function Of({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <>
      <b class="name">{name}</b> {children}
    </>
  )
}

const NOTICES_SHOWN = 5

function NeedsAttention({ of }: { readonly of: Overview }) {
  const [isWhole, showWhole] = useState(false)
  const notices = noticesOf(of, useAccount(10_000).value)
  const shown = isWhole ? notices : notices.slice(0, NOTICES_SHOWN)
  return (
    <section aria-label="Needs attention">
      <h2>
        Needs attention{' '}
        {notices.length > shown.length && (
          <button type="button" class="link" onClick={() => showWhole(true)}>
            {notices.length - shown.length} more
          </button>
        )}
      </h2>
      {notices.length === 0 && (
        <p class="quiet">
          All clear: no budget nearly spent, no key about to expire, no model without a price.
        </p>
      )}
      <ul class="notices">
        {shown.map(({ to, title, kind }, i) => (
          <li key={i} class={kind}>
            <Link to={to}>{title}</Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Before the first call the page shows how to make one, and becomes the overview when the call comes. */
function FirstRun() {
  const [key, setKey] = useState<string | null>(null)
  const command = useCommand()
  const { mayManage } = usePermissions()
  const create = async () =>
    setKey((await send<NewKey>('POST', '/v1/keys', { name: 'first', monthly_budget_usd: 10 })).key)
  return (
    <>
      <Heading title="The first call" />
      <p class="lead">A client changes two things: the base URL and the key.</p>
      {key === null && mayManage && (
        <p>
          <Button
            title="Create a key with a cap of $10"
            kind="primary"
            isDisabled={command.isBusy}
            onClick={() => void command.run(create)}
          />
        </p>
      )}
      {key !== null && <p class="quiet">The lines below contain the key. It is shown only once.</p>}
      {command.error !== null && <Failure error={command.error} />}
      <ClientSetup secret={key ?? 'svc_live_…'} />
      <p role="status" class="quiet">
        Waiting for the first call…
      </p>
      <RefusedCalls path="/gateway/v1/requests" keyId={null} />
    </>
  )
}
