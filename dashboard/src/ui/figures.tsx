import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Account, Key } from '../api.ts'
import { useAccount, useNow, usePermissions } from '../data.ts'
import { exactMoney, exactTime, figure, inWords, isoTime, money, percent } from '../format.ts'
import { Link } from '../router.tsx'

/** An amount in cents; the exact amount on hover. */
export function Money({ usd, decimals }: { readonly usd: number; readonly decimals?: number }) {
  return (
    <data value={usd} title={exactMoney(usd)}>
      {money(usd, decimals)}
    </data>
  )
}

/** An amount of a column whose header names the unit. All have as many decimals, so that points stand below each other. */
export function Figure({ usd, decimals = 2 }: { readonly usd: number; readonly decimals?: number }) {
  const least = 10 ** -decimals
  return (
    <data value={usd} title={exactMoney(usd)}>
      {usd > 0 && usd < least ? `<${least.toFixed(decimals)}` : figure(usd, decimals)}
    </data>
  )
}

/** A time in words; the exact time on hover. */
export function When({ at, never = 'never' }: { readonly at: string | null; readonly never?: string }) {
  const now = useNow()
  if (at === null) return <span class="quiet">{never}</span>
  return (
    <time dateTime={at} title={exactTime(at)}>
      {inWords(Date.parse(at), now)}
    </time>
  )
}

/** A time of a table; the exact time and how long ago it was on hover. */
export function At({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={`${exactTime(at)}, ${inWords(Date.parse(at), Date.now())}`}>
      {isoTime(at)}
    </time>
  )
}

/** The name of a key, with a link to its page for those who may open it. */
export function KeyLink({ id, name }: { readonly id: string; readonly name: string }) {
  const { isDeveloper } = usePermissions()
  if (isDeveloper) return <b class="name">{name}</b>
  return (
    <Link to={`/keys/${id}`} class="name" title={id}>
      {name}
    </Link>
  )
}

/** An id in short, copied with a click. */
export function Id({ id, shown = id }: { readonly id: string; readonly shown?: string }) {
  return (
    <span class="id">
      <code title={id}>{shown}</code>
      <Copy text={id} what={id} />
    </span>
  )
}

interface CopyProps {
  readonly text: string
  readonly what: string
  onCopied?: (() => void) | undefined
}

export function Copy({ text, what, onCopied }: CopyProps) {
  const [isCopied, setCopied] = useState(false)
  async function copy(): Promise<void> {
    await writeToClipboard(text)
    setCopied(true)
    onCopied?.()
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" class="link copy" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : 'Copy'}</span>
    </button>
  )
}

/** Text to copy: lines of a client, a payload, a secret. The Tab key stops at one that may scroll, so that arrow keys scroll it. */
export function Snippet({ text, what, onCopied, isCode = false }: CopyProps & { readonly isCode?: boolean }) {
  const isLong = isCode || text.length > 600 || text.split('\n').length > 20
  return (
    <div class="snippet">
      <pre class={isCode ? 'code' : undefined} tabIndex={isLong ? 0 : undefined}>
        <code>{text}</code>
      </pre>
      <Copy text={text} what={what} onCopied={onCopied} />
    </div>
  )
}

/** A record as the API answers it. */
export function Raw({ of: record }: { readonly of: object }) {
  return (
    <details>
      <summary>JSON</summary>
      <Snippet text={JSON.stringify(record, null, 2)} what="the record" />
    </details>
  )
}

/** The sum of some calls, with a link to them. */
export function MoneyLink({ to, usd }: { readonly to: string; readonly usd: number }) {
  return (
    <Link to={to}>
      <Money usd={usd} />
    </Link>
  )
}

/** Browsers have a clipboard for pages of https: and localhost alone; elsewhere the old command still copies. */
async function writeToClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  const parent = document.querySelector('dialog') ?? document.body
  parent.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

type Budget = Pick<Account, 'monthly_budget_usd' | 'month_spend_usd' | 'month_held_usd'> &
  Partial<Pick<Key, 'daily_budget_usd' | 'day_spend_usd'>>

/** The part of a cap that is spent, of the month or of the day, whichever is closer to its cap. */
export function tightestOf(budget: Budget): {
  readonly period: 'month' | 'day'
  readonly spent: number
  readonly cap: number | null
  readonly share: number
} {
  const share = (spent: number, cap: number) => (cap === 0 ? (spent > 0 ? 1 : 0) : spent / cap)
  const { monthly_budget_usd: cap, month_spend_usd: spent } = budget
  const month = { period: 'month', spent, cap, share: cap === null ? 0 : share(spent, cap) } as const
  const { daily_budget_usd: dayCap = null, day_spend_usd: daySpent = 0 } = budget
  if (dayCap === null) return month
  const day = { period: 'day', spent: daySpent, cap: dayCap, share: share(daySpent, dayCap) } as const
  return cap === null || day.share > month.share ? day : month
}

interface BudgetBarProps {
  readonly budget: Budget
  /** The page of the calls that the spend is of. */
  readonly to?: string | undefined
}

/** The spend and what is reserved, against the cap that is closer. */
export function BudgetBar({ budget, to }: BudgetBarProps) {
  const { period, spent, cap, share } = tightestOf(budget)
  const held = budget.month_held_usd
  if (cap === null) {
    return (
      <Spent usd={spent} to={to}>
        <span class="quiet">no cap</span>
      </Spent>
    )
  }
  const spentPercent = Math.min(100, share * 100)
  const heldPercent = cap === 0 ? 0 : Math.min((held / cap) * 100, 100 - spentPercent)
  const level = spent >= cap ? 'full' : share >= 0.8 ? 'high' : 'fine'
  return (
    <Spent
      usd={spent}
      to={to}
      bar={
        <span class={`bar ${level}`} aria-hidden="true">
          <span class="spent" style={{ width: `${spentPercent}%` }} />
          <span class="held" style={{ width: `${heldPercent}%` }} />
        </span>
      }
    >
      <span>
        <span class="quiet">of</span> <Money usd={cap} decimals={cap % 1 === 0 ? 0 : 2} />
        {period === 'day' && <span class="quiet"> today</span>}
        {held > 0 && (
          <span class="quiet" title={`${exactMoney(held)} is reserved for calls in flight`}>
            {' '}
            + {money(held)} reserved
          </span>
        )}
      </span>
      {level !== 'fine' && <b class={level}>{spent >= cap ? 'spent' : percent(spent, cap)}</b>}
    </Spent>
  )
}

interface SpentProps {
  readonly usd: number
  readonly to?: string | undefined
  readonly bar?: ComponentChildren
  readonly children?: ComponentChildren
}

/** A spend in a column of bars: without a bar it has the room of one. */
export function Spent({ usd, to, bar, children }: SpentProps) {
  return (
    <span class="budget">
      {bar ?? <span class="bar none" />}
      <span class="spent-figure">
        {to === undefined ? <Money usd={usd} /> : <MoneyLink to={to} usd={usd} />}
      </span>
      {children}
    </span>
  )
}

/** The account that a page is about, and its ceiling if it has one. */
export function AccountLine({ hasBudget = false }: { readonly hasBudget?: boolean }) {
  const { value } = useAccount(hasBudget ? 10_000 : null)
  if (value === null) return null
  return (
    <p class="quiet">
      Account: <b class="name">{value.name}</b>{' '}
      {hasBudget && value.monthly_budget_usd !== null && <BudgetBar budget={value} />}
    </p>
  )
}

/** Upstream's time and ours, to scale. */
export function TimeBar({
  upstreamMs,
  overheadMs,
}: {
  readonly upstreamMs: number
  readonly overheadMs: number
}) {
  const all = Math.max(1, upstreamMs + overheadMs)
  return (
    <span
      class="bar time"
      role="img"
      aria-label={`${upstreamMs} ms upstream, ${overheadMs} ms in the gateway`}
    >
      <span class="upstream" style={{ width: `${(upstreamMs / all) * 100}%` }} />
      <span class="overhead" style={{ width: `${(overheadMs / all) * 100}%` }} />
    </span>
  )
}
