import type { ActivityEvent, Key, ListOf, Usage } from '../api.ts'
import { useResource } from '../data.ts'
import { addDays, dayAndMonth, dayOf, exactTime, monthInWords } from '../format.ts'
import { sumUsd } from '../forms/readings.ts'
import { Figure } from '../parts/figures.tsx'
import { Table, usdColumn } from '../parts/table.tsx'
import { withQuery } from '../router.tsx'

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
  const read = (type: string) =>
    withQuery('/gateway/v1/events', { type: `key.budget.${type}`, actor: keyId, limit: 100 })
  const thresholds = useResource<ListOf<ActivityEvent>>(read('threshold'), 60_000)
  const exceeded = useResource<ListOf<ActivityEvent>>(read('exceeded'), 60_000)
  return [...(thresholds.value?.data ?? []), ...(exceeded.value?.data ?? [])]
    .filter(({ data }) => data['period'] === 'month')
    .map(({ created_at, type, data }) => ({
      at: created_at,
      percent: type.endsWith('exceeded') ? 100 : Number(data['threshold_percent']),
    }))
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
  const path = withQuery('/v1/usage', { key: key.id, start, end: today, group_by: 'day', limit: 400 })
  const usage = useResource<Usage>(path, 60_000)
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
