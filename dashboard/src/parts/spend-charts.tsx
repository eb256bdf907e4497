import type { Usage } from '../api.ts'
import { useResource } from '../data.ts'
import { addDays, dayOf } from '../format.ts'
import { navigate, type Query, withQuery } from '../router.tsx'
import { BarChart } from './chart.tsx'
import { costPerDay } from './chart-series.ts'
import { Ranking, READ_MAX } from './ranking.tsx'

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
  const read = (group_by: string) =>
    withQuery('/v1/usage', { ...asked, start, end, group_by, limit: READ_MAX })
  const days = useResource<Usage>(read('day'), 15_000)
  const { value: shares } = useResource<Usage>(read(by), 15_000)
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
        // The page Usage has no filter by key.
        all={shown['key'] == null ? withQuery('/usage', { ...shown, start, end, by }) : null}
        toOf={({ key, model }) => callsOf(by === 'model' ? { model } : { key })}
      />
    </div>
  )
}
