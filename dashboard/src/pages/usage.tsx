import type { Bucket, Call, Usage } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, daysBetween, daysInWords, percent, shortCount } from '../format.ts'
import { Link, navigate, setQuery, withQuery } from '../router.tsx'
import { BarChart, stackBy } from '../ui/chart.tsx'
import { Choices, DateRange, Download } from '../ui/choices.tsx'
import { Stat } from '../ui/facts.tsx'
import { Figure, KeyLink, Money } from '../ui/figures.tsx'
import { Empty, Heading, Loaded, Tag } from '../ui/states.tsx'
import { type Column, Table, usdColumn } from '../ui/table.tsx'

const DIMENSIONS = ['day', 'model', 'key'] as const
type Dimension = (typeof DIMENSIONS)[number]
const ROWS = 200

interface Days {
  readonly start: string
  readonly end: string
}

function rangesOf(today: string) {
  const month = `${today.slice(0, 8)}01`
  const lastOfBefore = addDays(month, -1)
  return {
    'This month': { start: month, end: today },
    'Last month': { start: `${lastOfBefore.slice(0, 8)}01`, end: lastOfBefore },
    '7 days': { start: addDays(today, -6), end: today },
    '30 days': { start: addDays(today, -29), end: today },
    'A year': { start: addDays(today, -364), end: today },
  }
}

/** Shows the sums of `GET /v1/usage`, each with a link to its calls. */
export function UsagePage({ query }: { readonly query: URLSearchParams }) {
  const { isDeveloper } = usePermissions()
  const offered = DIMENSIONS.filter((each) => !isDeveloper || each !== 'key')
  const ranges = rangesOf(dayOf(Date.now()))
  const thisMonth = ranges['This month']
  const start = query.get('start') ?? thisMonth.start
  const end = query.get('end') ?? thisMonth.end
  const by = (query.get('by') ?? 'model')
    .split(',')
    .filter((name): name is Dimension => offered.includes(name as Dimension))
  const stackedBy = by.find((each) => each !== 'day') ?? null
  const after = query.get('after')
  const asked = { start, end, group_by: by.join(',') }
  const usage = useResource<Usage>(withQuery('/v1/usage', { ...asked, limit: ROWS, after }), 10_000)
  const days = useResource<Usage>(withQuery('/v1/usage', { start, end, group_by: 'day' }), 10_000)

  function toggle(dimension: Dimension): void {
    const chosen = by.includes(dimension) ? by.filter((each) => each !== dimension) : [...by, dimension]
    setQuery({ by: DIMENSIONS.filter((each) => chosen.includes(each)).join(',') || 'none', after: null })
  }

  return (
    <>
      <Heading title="Usage">
        <Download
          path={withQuery('/v1/usage', { ...asked, format: 'csv' })}
          name={`usage-${start}-${end}.csv`}
        />
      </Heading>
      <div class="filters">
        <Choices
          title="Time"
          isTitled
          options={Object.keys(ranges) as (keyof typeof ranges)[]}
          isChosen={(title) => ranges[title].start === start && ranges[title].end === end}
          onChoose={(title) => setQuery({ ...ranges[title], after: null })}
        />
        <DateRange start={start} end={end} />
        <Choices
          title="Group by"
          isTitled
          options={offered}
          nameOf={(each) => TITLES[each]}
          isChosen={(each) => by.includes(each)}
          onChoose={toggle}
        />
      </div>
      {usage.error === null && (
        <Loaded resource={days} lines={5}>
          {({ data, total }) => (
            <>
              {total.requests > 0 && <Stats of={total} start={start} end={end} />}
              {total.requests > 0 &&
                (daysBetween(start, end).length <= HOURLY_DAYS_MAX ? (
                  <HourBars start={start} end={end} by={stackedBy} calls={total.requests} />
                ) : (
                  <DayBars start={start} end={end} by={stackedBy} buckets={data} />
                ))}
            </>
          )}
        </Loaded>
      )}
      <Loaded resource={usage} lines={6}>
        {({ data, next, total }) =>
          data.length === 0 ? (
            <Empty
              title="No settled calls in this period."
              action={start !== thisMonth.start && <Link to="/usage">This month</Link>}
              words="Choose other dates, or make a call. Usage counts a call when it ends."
            />
          ) : (
            <Table
              caption="Usage"
              columns={columnsOf(by, start, end)}
              rows={linesOf(data, by, after === null && next === null)}
              total={['Total', { ...total, id: 'total' }]}
              after={after}
              next={next}
            />
          )
        }
      </Loaded>
    </>
  )
}

function Stats({ of: total, start, end }: Days & { readonly of: Bucket }) {
  const { credited_usd: credited } = total
  const calls = withQuery('/requests', { start, end })
  return (
    <ul class="sums">
      <Stat
        title="Cost"
        value={<Money to={calls} usd={total.cost_usd} />}
        note={<CostComparison cost={total.cost_usd} start={start} end={end} />}
      />
      <Stat title="At list price" value={<Money to={calls} usd={total.list_cost_usd} />} />
      <Stat
        title="Saved"
        value={<Money to={calls} usd={total.savings_usd} />}
        note={`${percent(total.savings_usd, total.list_cost_usd)} of the list price`}
      />
      {credited > 0 && (
        <Stat title="Credited back" value={<Money to={`${calls}&flag=credited`} usd={credited} />} />
      )}
      <Stat title="Calls" value={<Link to={calls}>{count(total.requests)}</Link>} />
    </ul>
  )
}

/** The days to compare with: for days of a month, the same days of the month before; else as many days before. */
function daysBefore({ start, end }: Days): Days {
  const last = addDays(start, -1)
  if (!start.endsWith('-01') || end.slice(0, 7) !== start.slice(0, 7))
    return { start: addDays(start, -daysBetween(start, end).length), end: last }
  const same = `${last.slice(0, 8)}${end.slice(8)}`
  const isWhole = addDays(end, 1).endsWith('-01')
  return { start: `${last.slice(0, 8)}01`, end: isWhole || same > last ? last : same }
}

export function CostComparison({ cost, ...days }: Days & { readonly cost: number }) {
  const { start, end } = daysBefore(days)
  const { value } = useResource<Usage>(withQuery('/v1/usage', { start, end }), 60_000)
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

interface StackProps {
  readonly by: 'model' | 'key' | null
}

const STACKED_MAX = 10_000

/** The cost per day, stacked by model or key. If there are too many groups to read at once, it is not stacked. */
function DayBars({ start, end, by, buckets }: StackProps & Days & { readonly buckets: readonly Bucket[] }) {
  const path = withQuery('/v1/usage', { start, end, group_by: `day,${by}`, limit: STACKED_MAX })
  const parts = useResource<Usage>(by === null ? null : path, 15_000)
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
  return (
    <BarChart
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
/** Up to this many days, the chart shows hours. Usage has no hours, so all calls are read, up to CALLS_MAX. */
const HOURLY_DAYS_MAX = 3
const CALLS_MAX = 5_000

function HourBars({ start, end, by, calls: expected }: StackProps & Days & { readonly calls: number }) {
  const query = { start, end, state: 'settled', format: 'ndjson' }
  const isFew = expected <= CALLS_MAX
  const { value } = useResource<readonly Call[]>(isFew ? withQuery('/gateway/v1/requests', query) : null)
  if (!isFew) return <p class="quiet">The hourly chart is available for at most {count(CALLS_MAX)} calls.</p>
  if (value === null) return null
  const { slots, series } = stackBy(
    daysBetween(start, end).flatMap((day) => HOURS.map((hour) => `${day} ${hour}`)),
    value.map((call) => ({
      ...call,
      cost_usd: call.cost_usd ?? 0,
      list_cost_usd: call.list_cost_usd ?? 0,
      requests: 1,
    })),
    ({ started_at }) => `${started_at.slice(0, 10)} ${started_at.slice(11, 13)}:00`,
    ({ model_served, model, key_name }) => ({
      name: by === 'key' ? key_name : by === 'model' ? (model_served ?? model ?? 'no model') : 'Cost',
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

const TOKENS = [
  ['Input', 'input_tokens'],
  ['Output', 'output_tokens'],
  ['Cache read', 'cache_read_tokens'],
  ['Cache write', 'cache_write_tokens'],
] as const

const TITLES: Record<Dimension, string> = { day: 'Day', model: 'Model', key: 'Key' }

function columnsOf(by: readonly Dimension[], start: string, end: string): Column<Line>[] {
  const callsOf = ({ day, model, key }: Bucket) =>
    withQuery('/requests', { start: day ?? start, end: day ?? end, model, key })
  const dimension = (name: Dimension): Column<Line> => ({
    title: TITLES[name],
    isWide: name === 'key',
    lead: 'left',
    cell: (bucket) => (
      <>
        {name === 'key' ? (
          <KeyLink id={bucket.key ?? ''} name={bucket.key_name ?? bucket.key ?? ''} />
        ) : (
          <span>{bucket[name] || 'no model'}</span>
        )}
        {name === by.at(-1) && <UsageFlags of={bucket} />}
      </>
    ),
  })
  return [
    ...by.map(dimension),
    ...(by.length === 0 ? [{ title: '', lead: 'left' as const, cell: () => 'All' }] : []),
    {
      title: 'Cost, USD',
      isFigure: true,
      lead: 'right',
      cell: (bucket) => <Figure usd={bucket.cost_usd} to={callsOf(bucket)} />,
    },
    usdColumn('List', ({ list_cost_usd }) => list_cost_usd, { isMinor: true }),
    usdColumn('Saved', ({ savings_usd }) => savings_usd, { isMinor: true }),
    {
      title: 'Calls',
      isFigure: true,
      cell: (bucket) => <Link to={callsOf(bucket)}>{count(bucket.requests)}</Link>,
    },
    ...TOKENS.map(([title, name]) => ({
      title,
      isFigure: true,
      isMinor: true,
      cell: (bucket: Bucket) => tokenCount(bucket[name]),
    })),
  ]
}

/** How many calls of a sum are unpriced or estimated. */
const UsageFlags = ({ of: bucket }: { readonly of: Bucket }) => (
  <>
    {bucket.unpriced_requests > 0 && <Tag kind="high">{count(bucket.unpriced_requests)} unpriced</Tag>}
    {bucket.estimated_requests > 0 && <Tag kind="plain">{count(bucket.estimated_requests)} estimated</Tag>}
  </>
)

type Line = Bucket & { readonly id: string }

/** Sorts by cost, unless the list has several pages or is grouped by day. */
function linesOf(buckets: readonly Bucket[], by: readonly Dimension[], isAll: boolean): readonly Line[] {
  const lines = buckets.map((bucket) => ({ ...bucket, id: `${bucket.day} ${bucket.model} ${bucket.key}` }))
  return isAll && !by.includes('day') ? lines.sort((a, b) => b.cost_usd - a.cost_usd) : lines
}

function tokenCount(n: number) {
  return n === 0 ? <span class="quiet">0</span> : <span title={count(n)}>{shortCount(n)}</span>
}
