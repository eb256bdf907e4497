import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Overview } from '../api.ts'
import type { OwnAccount } from '../data.ts'
import { addDays, count, dayOf, percent, plural } from '../format.ts'
import { RelativeTime, tightestCap } from '../parts/figures.tsx'
import { Link, withQuery } from '../router.tsx'

interface Notice {
  readonly kind: 'bad' | 'high'
  readonly to: string
  readonly name: string | undefined
  readonly words: ComponentChildren
}

function noticeOf(kind: Notice['kind'], to: string, words: ComponentChildren, name?: string): Notice {
  return { kind, to, words, name }
}

/** The findings that need action, the most severe first. */
export function noticesOf({ attention }: Overview, account: OwnAccount | null): readonly Notice[] {
  const { keys_exhausted, keys_near_cap, keys_expiring, unpriced_models, refusals } = attention
  const { webhooks_disabled: disabled, webhooks_failed_deliveries: failed } = attention
  const budgetOf = (period: 'month' | 'day') => (period === 'day' ? "today's budget" : 'its budget')
  const yesterday = addDays(dayOf(Date.now()), -1)
  const refused = withQuery('/requests', { state: 'refused', start: yesterday })
  const more = ({ count: all, data }: { count: number; data: readonly unknown[] }, words: string) =>
    all > data.length ? [noticeOf('high', '/keys', `${count(all - data.length)} more keys ${words}`)] : []
  return [
    ...(account === null ? [] : accountNoticesOf(account)),
    ...keys_exhausted.data.map(({ id, name, period }) =>
      noticeOf('bad', `/keys/${id}`, `has spent ${budgetOf(period)}`, name),
    ),
    ...more(keys_exhausted, 'have spent their budget'),
    ...unpriced_models.map(({ model, requests }) => {
      const to = withQuery('/requests', { flag: 'unpriced', model })
      return noticeOf('bad', to, `has no price: ${plural(requests, 'call')} in 7 days`, model)
    }),
    ...(disabled > 0 ? [noticeOf('bad', '/webhooks', `${plural(disabled, 'webhook')} turned off`)] : []),
    ...(failed > 0
      ? [noticeOf('bad', '/webhooks', `${plural(failed, 'delivery', 'deliveries')} failed`)]
      : []),
    ...keys_near_cap.data.map(({ id, name, period, percent }) =>
      noticeOf('high', `/keys/${id}`, `is at ${percent}% of ${budgetOf(period)}`, name),
    ),
    ...more(keys_near_cap, 'are near their budget'),
    ...keys_expiring.data.map(({ id, name, expires_at }) =>
      noticeOf('high', `/keys/${id}`, ['expires ', <RelativeTime key="when" at={expires_at} />], name),
    ),
    ...more(keys_expiring, 'expire within a week'),
    ...refusals.map(({ code, calls }) => {
      const words = [`${plural(calls, 'call')} refused with `, <code key="code">{code}</code>, ' in 24 h']
      return noticeOf('high', refused, words)
    }),
  ]
}

/** Findings about the account's budget and credit, which stop all keys of the account. */
function accountNoticesOf({ name, credit_enforced, balance_usd, ...budget }: OwnAccount): readonly Notice[] {
  const { share = 0, isSpent = false } = tightestCap(budget) ?? {}
  const part = `is at ${percent(share, 1)} of its budget`
  return [
    ...(isSpent ? [noticeOf('bad', '/settings', 'has spent its budget', name)] : []),
    ...(credit_enforced && balance_usd <= 0 ? [noticeOf('bad', '/credits', 'has no credit left', name)] : []),
    ...(!isSpent && share >= 0.8 ? [noticeOf('high', '/settings', part, name)] : []),
  ]
}

const NOTICES_SHOWN = 5

export function NeedsAttention({ notices }: { readonly notices: readonly Notice[] }) {
  const [isExpanded, setExpanded] = useState(false)
  const shown = isExpanded ? notices : notices.slice(0, NOTICES_SHOWN)
  return (
    <section aria-label="Needs attention">
      <h2>
        Needs attention{' '}
        {notices.length > shown.length && (
          <button type="button" class="link" onClick={() => setExpanded(true)}>
            {notices.length - shown.length} more
          </button>
        )}
      </h2>
      {notices.length === 0 && (
        <p class="quiet">
          Nothing: no budget is nearly spent, no key expires soon, and every model has a price.
        </p>
      )}
      <ul class="notices">
        {shown.map(({ kind, to, name, words }, i) => (
          <li key={i} class={kind}>
            <Link to={to}>
              {name !== undefined && <b class="name">{name}</b>} {words}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
