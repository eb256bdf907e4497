import type { ComponentChildren } from 'preact'
import type { Account, ActivityEvent, Call, Key } from '../api.ts'
import { useNow, usePermissions, useResource } from '../data.ts'
import { exactMoney, exactTime, figure, isoTime, money, percent, relativeTime } from '../format.ts'
import { Link, withQuery } from '../router.tsx'
import f from './facts.module.css'
import s from './figures.module.css'

interface AmountProps {
  readonly usd: number
  readonly decimals?: number | undefined
  readonly to?: string | undefined
}

function Amount({ usd, to, text }: AmountProps & { readonly text: string }) {
  const data = (
    <data value={usd} title={exactMoney(usd)}>
      {text}
    </data>
  )
  return to === undefined ? data : <Link to={to}>{data}</Link>
}

export const Money = (amount: AmountProps) => <Amount {...amount} text={money(amount.usd, amount.decimals)} />

/** A balance, rounded down to cents: the page never shows more credit than there is. */
export function Balance({ usd, to, isFigure = false }: AmountProps & { readonly isFigure?: boolean }) {
  const cents = Math.floor(Number((usd * 100).toFixed(7)))
  const shown = Math.abs(usd) < 0.01 ? usd : cents / 100
  return <Amount usd={usd} to={to} text={isFigure ? figure(shown) : money(shown)} />
}

/** An amount in a column whose header names the unit. All have the same number of decimals, so that the points align. */
export function Figure({ decimals = 2, ...amount }: AmountProps) {
  const least = 10 ** -decimals
  const isTiny = amount.usd > 0 && amount.usd < least
  return <Amount {...amount} text={isTiny ? `<${least.toFixed(decimals)}` : figure(amount.usd, decimals)} />
}

type RelativeTimeProps = { readonly at: string | null; readonly never?: string }

export function RelativeTime({ at, never = 'never' }: RelativeTimeProps) {
  const now = useNow()
  if (at === null) return <span class="quiet">{never}</span>
  return (
    <time dateTime={at} title={exactTime(at)}>
      {relativeTime(Date.parse(at), now)}
    </time>
  )
}

/** A time in a table, with exact and relative time on hover. `isOfDay`: without the date, for rows grouped by day. */
export function Timestamp({ at, isOfDay = false }: { readonly at: string; readonly isOfDay?: boolean }) {
  return (
    <time dateTime={at} title={`${exactTime(at)}, ${relativeTime(Date.parse(at), Date.now())}`}>
      {isOfDay ? isoTime(at).slice(11) : isoTime(at)}
    </time>
  )
}

export function KeyLink({ id, name }: { readonly id: string; readonly name: string }) {
  const { isDeveloper } = usePermissions()
  if (isDeveloper) return <b class="name">{name}</b>
  return (
    <Link to={`/keys/${id}`} class="name" title={id}>
      {name}
    </Link>
  )
}

export function PersonLink({ id }: { readonly id: string }) {
  const { value } = useResource('/gateway/v1/people/{id}', { id })
  return (
    <Link to={`/people/${id}`} class="name">
      {value?.name || value?.email || id}
    </Link>
  )
}

type Capped = Pick<Account, 'monthly_budget_usd' | 'month_spend_usd' | 'month_held_usd'> &
  Partial<Pick<Key, 'daily_budget_usd' | 'day_spend_usd'>>

/** The monthly or the daily budget, whichever has the higher spent share. Null: there is no budget. */
export function tightestCap(budget: Capped) {
  const capOf = (period: 'month' | 'day', spent: number, cap: number) => {
    const share = cap === 0 ? (spent > 0 ? 1 : 0) : spent / cap
    return { period, spent, cap, share, isSpent: spent >= cap }
  }
  const { monthly_budget_usd: monthly, daily_budget_usd: daily } = budget
  const month = monthly === null ? null : capOf('month', budget.month_spend_usd, monthly)
  const day = daily == null ? null : capOf('day', budget.day_spend_usd ?? 0, daily)
  return month === null || (day !== null && day.share > month.share) ? day : month
}

export function Budget({ of: budget }: { readonly of: Capped }) {
  const tightest = tightestCap(budget)
  if (tightest === null) return <span class="quiet">no budget</span>
  const { period, spent, cap, share, isSpent } = tightest
  const held = budget.month_held_usd
  const spentPercent = Math.min(100, share * 100)
  const heldPercent = cap === 0 ? 0 : Math.min((held / cap) * 100, 100 - spentPercent)
  const level = isSpent ? 'full' : share >= 0.8 ? 'almost' : 'fine'
  return (
    <span class={s.budget}>
      <span class={`${s.bar} ${s[level]}`} aria-hidden="true">
        <span class={s.spent} style={{ width: `${spentPercent}%` }} />
        <span class={s.held} style={{ width: `${heldPercent}%` }} />
      </span>
      <span>
        {period === 'day' && <Money usd={spent} />} <span class="quiet">of</span>{' '}
        <Money usd={cap} decimals={cap % 1 === 0 ? 0 : 2} />
        {period === 'day' && <span class="quiet"> today</span>}
        {held > 0 && <span class="quiet" title={exactMoney(held)}>{` + ${money(held)} reserved`}</span>}
      </span>
      {level !== 'fine' && <b class={s[level]}>{isSpent ? 'spent' : percent(spent, cap)}</b>}
    </span>
  )
}

export function TimeBar({ of: call }: { readonly of: Pick<Call, 'upstream_ms' | 'overhead_ms'> }) {
  const [upstreamMs, overheadMs] = [call.upstream_ms ?? 0, call.overhead_ms ?? 0]
  const all = Math.max(1, upstreamMs + overheadMs)
  return (
    <span
      class={`${s.bar} ${s.time}`}
      role="img"
      aria-label={`${upstreamMs} ms upstream, ${overheadMs} ms in the gateway`}
    >
      <span class={s.upstream} style={{ width: `${(upstreamMs / all) * 100}%` }} />
      <span class={s.overhead} style={{ width: `${(overheadMs / all) * 100}%` }} />
    </span>
  )
}

export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class={f.facts}>{children}</dl>
}

interface FactProps {
  readonly title: ComponentChildren
  readonly value?: ComponentChildren
  readonly children?: ComponentChildren
}

/** Renders nothing if there is no value. */
export function Fact({ title, value, children }: FactProps) {
  if (value === null || value === false || value === '') return null
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        {value}
        {children}
      </dd>
    </div>
  )
}

export function Metadata({ of: metadata }: { readonly of: Readonly<Record<string, string>> }) {
  const pairs = Object.entries(metadata)
  return <Fact title="Metadata" value={pairs.map(([name, text]) => `${name}: ${text}`).join(', ')} />
}

/** The figures at the top of a page. */
export const Sums = ({ children }: { readonly children: ComponentChildren }) => (
  <ul class={f.sums}>{children}</ul>
)

interface StatProps {
  readonly title: string
  readonly value: ComponentChildren
  readonly note?: ComponentChildren
}

export function Stat({ title, value, note }: StatProps) {
  return (
    <li>
      <span>{title}</span>
      <b>{value}</b>
      {note !== undefined && <span>{note}</span>}
    </li>
  )
}

const BY: Readonly<Record<string, string>> = {
  session: 'in the dashboard',
  person: '',
  admin_key: 'over the API',
  api_key: 'by a call',
  command_line: 'command line',
  system: 'Tollgate',
}

/** The actor of a change. The name of an admin key links to all changes that it made. */
export function ActorName({ actor: { kind, id, name } }: { readonly actor: ActivityEvent['actor'] }) {
  if (id === null) return <span class="quiet">{BY[kind]}</span>
  return (
    <>
      {kind === 'api_key' ? (
        <KeyLink id={id} name={name ?? id} />
      ) : kind === 'person' ? (
        <Link to={`/people/${id}`} class="name">
          {name ?? id}
        </Link>
      ) : (
        <Link to={withQuery('/activity', { actor: id })} class="name" title={id}>
          {name ?? id}
        </Link>
      )}{' '}
      <small class="quiet">{BY[kind]}</small>
    </>
  )
}
