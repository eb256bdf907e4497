import type { Bucket } from '../api.ts'
import { useResource } from '../data.ts'
import { daysBetween, daysInWords } from '../format.ts'
import { BarChart } from '../parts/chart.tsx'
import { costOf, costPerDay, type Series, stackBy } from '../parts/chart-series.ts'
import { type Days, daysBefore } from '../parts/spend-charts.tsx'
import { navigate, setQuery, withQuery } from '../router.tsx'

interface UsageBarsProps extends Days {
  readonly by: 'model' | 'key' | null
  readonly buckets: readonly Bucket[]
}

const STACKED_MAX = 10_000

/** Up to this many days, the bars are hours. */
const HOURLY_DAYS_MAX = 2

const HOUR_MS = 3_600_000
const HOURS = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)
const slotOf = ({ day = '', hour }: Bucket) =>
  hour === undefined ? day : `${hour.slice(0, 10)} ${hour.slice(11, 16)}`

/** The cost per day or hour, stacked by model or key. If there are too many groups to read at once, it is not stacked. */
export function UsageBars({ start, end, by, buckets }: UsageBarsProps) {
  const days = daysBetween(start, end)
  const isHourly = days.length <= HOURLY_DAYS_MAX
  const unit = isHourly ? 'hour' : 'day'
  const hours = useResource('/v1/usage', isHourly ? { start, end, group_by: unit } : null, 15_000).value
  const asked = { start, end, group_by: `${unit},${by}`, limit: STACKED_MAX }
  const { value, isLoading } = useResource('/v1/usage', by === null ? null : asked, 15_000)
  const parts = by === null || value === null || isLoading || value.has_more ? null : value.data
  const past = daysBefore({ start, end })
  const before = useResource('/v1/usage', isHourly ? null : { ...past, group_by: 'day' }, 60_000).value
  if (isHourly && hours === null) return null

  function seriesOf({ model, key = '', key_name }: Bucket): Series {
    if (parts === null) return { name: 'Cost' }
    return by === 'key'
      ? { name: key_name ?? key, to: withQuery('/requests', { start, end, key }) }
      : { name: model || 'no model', to: withQuery('/requests', { start, end, model }) }
  }
  function open(first: string, last = first): void {
    const instantOf = (hour: string, more = 0) =>
      new Date(Date.parse(`${hour.replace(' ', 'T')}Z`) + more).toISOString().replace('.000', '')
    if (!isHourly) setQuery({ start: first, end: last, after: null })
    else navigate(withQuery('/requests', { start: instantOf(first), end: instantOf(last, HOUR_MS) }))
  }
  const times = isHourly ? `hour${start === end ? ` of ${start}` : ''}, UTC` : 'day'
  const hint = value?.has_more ? `. Choose fewer days to stack it by ${by}.` : ''
  return (
    <BarChart
      title={`Cost per ${times}${parts === null ? '' : ` by ${by}`}, USD${hint}`}
      {...stackBy(
        isHourly ? days.flatMap((day) => HOURS.map((hour) => `${day} ${hour}`)) : days,
        parts ?? hours?.data ?? buckets,
        slotOf,
        seriesOf,
      )}
      earlier={
        before === null || before.total.cost_usd === 0
          ? undefined
          : {
              name: daysInWords(past.start, past.end),
              to: withQuery('/usage', { ...past }),
              costs: costPerDay(past.start, past.end, before.data).slots.map(costOf),
            }
      }
      onPick={open}
      onBrush={open}
    />
  )
}
