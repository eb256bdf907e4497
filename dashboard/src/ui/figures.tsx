import { useState } from 'preact/hooks'
import type { Key } from '../api.ts'
import { useNow } from '../data.ts'
import { decimalsFor, exactMoney, exactTime, figure, inWords, money, percent } from '../format.ts'
import { Link } from '../router.tsx'

/** An amount with as many digits as matter; the exact amount on hover. */
export function Money({ usd, decimals }: { readonly usd: number; readonly decimals?: number | undefined }) {
  return (
    <data value={usd} title={exactMoney(usd)}>
      {money(usd, decimals ?? decimalsFor(usd))}
    </data>
  )
}

/** An amount of a column whose header names the unit. */
export function Figure({ usd, decimals }: { readonly usd: number; readonly decimals: number }) {
  return (
    <data value={usd} title={exactMoney(usd)}>
      {figure(usd, decimals)}
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

export function KeyLink({ id, name }: { readonly id: string; readonly name: string }) {
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

export function Copy({
  text,
  what,
  onCopied,
}: {
  readonly text: string
  readonly what: string
  onCopied?(): void
}) {
  const [isCopied, setCopied] = useState(false)
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    onCopied?.()
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" class="link copy" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'copied' : 'copy'}</span>
    </button>
  )
}

/** The spend of a key or an account and what is reserved, against the cap. */
export function BudgetBar({
  budget,
}: {
  readonly budget: Pick<Key, 'monthly_budget_usd' | 'month_spend_usd' | 'month_held_usd'>
}) {
  const { monthly_budget_usd: cap, month_spend_usd: spent, month_held_usd: held } = budget
  if (cap === null) {
    return (
      <span class="budget">
        <span class="bar none" />
        <Spent usd={spent} />
        <span class="quiet">no cap</span>
      </span>
    )
  }
  const share = (usd: number) => (cap === 0 ? (usd > 0 ? 100 : 0) : Math.min(100, (usd / cap) * 100))
  const level = spent >= cap ? 'full' : share(spent) >= 80 ? 'high' : 'fine'
  return (
    <span class="budget">
      <span class={`bar ${level}`} aria-hidden="true">
        <span class="spent" style={{ width: `${share(spent)}%` }} />
        <span class="held" style={{ width: `${Math.min(share(held), 100 - share(spent))}%` }} />
      </span>
      <Spent usd={spent} />
      <span>
        <span class="quiet">of</span> <Money usd={cap} decimals={cap % 1 === 0 ? 0 : 2} />
        {held > 0 && (
          <span class="quiet" title={`${exactMoney(held)} is reserved for calls in flight`}>
            {' '}
            + {money(held)} reserved
          </span>
        )}
        {level !== 'fine' && <b class={level}> {spent >= cap ? 'spent' : percent(spent, cap)}</b>}
      </span>
    </span>
  )
}

/** An amount to the cent, so that a column of amounts can be read from top to bottom. */
function Spent({ usd }: { readonly usd: number }) {
  return (
    <data class="spent-figure" value={usd} title={exactMoney(usd)}>
      {usd > 0 && usd < 0.005 ? '<$0.01' : money(usd, 2)}
    </data>
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
      class="time-bar"
      role="img"
      aria-label={`${upstreamMs} ms upstream, ${overheadMs} ms in the gateway`}
    >
      <span class="upstream" style={{ width: `${(upstreamMs / all) * 100}%` }} />
      <span class="overhead" style={{ width: `${(overheadMs / all) * 100}%` }} />
    </span>
  )
}
