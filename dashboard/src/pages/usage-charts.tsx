import type { Bucket } from '../api.ts'
import { useResource } from '../data.ts'
import { daysBetween, daysInWords } from '../format.ts'
import { BarChart } from '../parts/chart.tsx'
import { costOf, costPerDay, stackBy } from '../parts/chart-series.ts'
import { type Days, daysBefore } from '../parts/spend-charts.tsx'
import { navigate, setQuery, withQuery } from '../router.tsx'

interface StackProps {
  readonly by: 'model' | 'key' | null
}

const STACKED_MAX = 10_000

/** The cost per day, stacked by model or key. If there are too many groups to read at once, it is not stacked. */
export function DayBars({
  start,
  end,
  by,
  buckets,
}: StackProps & Days & { readonly buckets: readonly Bucket[] }) {
  const asked = { start, end, group_by: `day,${by}`, limit: STACKED_MAX }
  const parts = useResource('/v1/usage', by === null ? null : asked, 15_000)
  const isStacked = by !== null && parts.value !== null && !parts.value.has_more && !parts.isLoading
  const { slots, series } = stackBy(
    daysBetween(start, end),
    isStacked ? (parts.value?.data ?? []) : buckets,
    ({ day = '' }) => day,
    ({ model, key = '', key_name }) => {
      if (!isStacked) return { name: 'Cost' }
      return by === 'key'
        ? { name: key_name ?? key, to: withQuery('/requests', { start, end, key }) }
        : { name: model || 'no model', to: withQuery('/requests', { start, end, model }) }
    },
  )
  const past = daysBefore({ start, end })
  const before = useResource('/v1/usage', { ...past, group_by: 'day' }, 60_000).value
  return (
    <BarChart
      earlier={
        before === null || before.total.cost_usd === 0
          ? undefined
          : {
              name: daysInWords(past.start, past.end),
              to: withQuery('/usage', { ...past }),
              costs: costPerDay(past.start, past.end, before.data).slots.map(costOf),
            }
      }
      title={
        isStacked
          ? `Cost per day by ${by}, USD`
          : `Cost per day, USD${parts.value?.has_more ? `. Choose fewer days to stack it by ${by}.` : ''}`
      }
      slots={slots}
      series={series}
      onPick={(day) => setQuery({ start: day, end: day, after: null })}
      onBrush={(from, to) => setQuery({ start: from, end: to, after: null })}
    />
  )
}

const HOURS = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)

/** Up to this many days, the chart shows hours. */
export const HOURLY_DAYS_MAX = 2

export function HourBars({ start, end, by }: StackProps & Days) {
  const group_by = by === null ? 'hour' : `hour,${by}`
  const { value } = useResource('/v1/usage', { start, end, group_by, limit: STACKED_MAX }, 15_000)
  if (value === null) return null
  const { slots, series } = stackBy(
    daysBetween(start, end).flatMap((day) => HOURS.map((hour) => `${day} ${hour}`)),
    value.data,
    ({ hour = '' }) => `${hour.slice(0, 10)} ${hour.slice(11, 16)}`,
    ({ model, key = '', key_name }) => ({
      name: by === 'key' ? (key_name ?? key) : by === 'model' ? model || 'no model' : 'Cost',
    }),
  )
  const callsOf = (first: string, last = first) => {
    const hourMs = 3_600_000
    const after = new Date(Date.parse(`${last.replace(' ', 'T')}Z`) + hourMs).toISOString()
    navigate(withQuery('/requests', { start: `${first.replace(' ', 'T')}:00Z`, end: after }))
  }
  return (
    <BarChart
      title={`Cost per hour${start === end ? ` of ${start}` : ''}, UTC`}
      slots={slots}
      series={series}
      onPick={callsOf}
      onBrush={callsOf}
    />
  )
}
