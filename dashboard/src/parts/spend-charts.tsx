import type { Bucket, Usage } from '../api.ts'
import { useResource } from '../data.ts'
import { addDays, count, dayOf, daysBetween, daysInWords, percent, plural } from '../format.ts'
import { Link, navigate, type Query, withQuery } from '../router.tsx'
import { BarChart } from './chart.tsx'
import { costPerDay } from './chart-series.ts'
import figures from './figures.module.css'
import { Money } from './figures.tsx'
import s from './ranking.module.css'

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
  const read = { ...asked, start, end, limit: READ_MAX }
  const days = useResource('/v1/usage', { ...read, group_by: 'day' }, 15_000)
  const { value: shares } = useResource('/v1/usage', { ...read, group_by: by }, 15_000)
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
        // The page Usage has no filter by key or person.
        all={
          shown['key'] == null && shown['person'] == null
            ? withQuery('/usage', { ...shown, start, end, by })
            : null
        }
        toOf={({ key, model }) => callsOf(by === 'model' ? { model } : { key })}
      />
    </div>
  )
}

const READ_MAX = 2_000

interface RankingProps {
  readonly title: string
  readonly by: 'key' | 'model'
  readonly of: Usage | null
  readonly max: number
  readonly all: string | null
  /** Whether each row has a bar, relative to the first row. Otherwise it has the number of calls. */
  readonly hasBars?: boolean
  toOf(bucket: Bucket): string
}

/** The keys or models with the highest cost, as links. */
function Ranking({ title, by, of: usage, max, all, hasBars = false, toOf }: RankingProps) {
  const isPart = usage?.has_more ?? false
  const buckets = isPart ? [] : (usage?.data ?? [])
  const top = buckets.toSorted((a, b) => b.cost_usd - a.cost_usd).slice(0, max)
  const most = top[0]?.cost_usd ?? 0
  return (
    <section aria-label={title}>
      <h2>
        {title} {all !== null && <Link to={all}>All</Link>}
      </h2>
      {isPart && <p class="quiet">There are more than {count(READ_MAX)}. Open Usage to see all of them.</p>}
      <ul class={s.ranking}>
        {top.map((bucket) => (
          <li key={toOf(bucket)}>
            <Link to={toOf(bucket)}>
              <span class="name">{(by === 'key' ? bucket.key_name : bucket.model) || 'no model'}</span>
              {hasBars ? (
                <span class={figures.bar}>
                  <span
                    class={figures.spent}
                    style={{ width: `${most === 0 ? 0 : (bucket.cost_usd / most) * 100}%` }}
                  />
                </span>
              ) : (
                <span class="quiet">{plural(bucket.requests, 'call')}</span>
              )}
              <Money usd={bucket.cost_usd} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The keys or models that cost most this month. */
export function TopSpend({ by }: { readonly by: 'key' | 'model' }) {
  const end = dayOf(Date.now())
  const start = `${end.slice(0, 8)}01`
  const asked = { start, end, group_by: by, limit: READ_MAX }
  return (
    <Ranking
      title={by === 'key' ? 'Top keys' : 'Top models'}
      by={by}
      of={useResource('/v1/usage', asked, 60_000).value}
      max={5}
      all={`/usage?by=${by}`}
      hasBars
      toOf={({ key, model }) =>
        by === 'key' ? `/keys/${key}` : withQuery('/requests', { start, end, model })
      }
    />
  )
}

export interface Days {
  readonly start: string
  readonly end: string
}

/** The days to compare with: for days of a month, the same days of the month before; else as many days before. */
export function daysBefore({ start, end }: Days): Days {
  const last = addDays(start, -1)
  if (!start.endsWith('-01') || end.slice(0, 7) !== start.slice(0, 7))
    return { start: addDays(start, -daysBetween(start, end).length), end: last }
  const same = `${last.slice(0, 8)}${end.slice(8)}`
  const isWhole = addDays(end, 1).endsWith('-01')
  return { start: `${last.slice(0, 8)}01`, end: isWhole || same > last ? last : same }
}

export function CostComparison({ cost, ...days }: Days & { readonly cost: number }) {
  const { start, end } = daysBefore(days)
  const { value } = useResource('/v1/usage', { start, end }, 60_000)
  if (value === null) return <>&nbsp;</>
  const before = value.total.cost_usd
  const named = daysInWords(start, end)
  if (before === 0) return <>nothing spent {named}</>
  const change = cost >= before ? `+${percent(cost - before, before)}` : `−${percent(before - cost, before)}`
  return (
    <>
      {change} against {named}: <Money to={withQuery('/usage', { start, end })} usd={before} />
    </>
  )
}
