import { useEffect, useState } from 'preact/hooks'
import { type Bucket, type Call, inAccount, type Usage } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, daysBetween, percent, shortCount } from '../format.ts'
import { Link, setQuery, withQuery } from '../router.tsx'
import { Bars, stack } from '../ui/chart.tsx'
import { Choices, DateRange, Download, Labelled } from '../ui/choices.tsx'
import { Sum } from '../ui/facts.tsx'
import { Figure, KeyLink, MoneyLink } from '../ui/figures.tsx'
import { Empty, Heading, Show, Tag } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'

const DIMENSIONS = ['day', 'model', 'key'] as const
type Dimension = (typeof DIMENSIONS)[number]
const ROWS = 200

interface Range {
  readonly title: string
  readonly start: string
  readonly end: string
}

function rangesOf(today: string): readonly Range[] {
  const month = `${today.slice(0, 8)}01`
  const lastOfBefore = addDays(month, -1)
  return [
    { title: 'This month', start: month, end: today },
    { title: 'Last month', start: `${lastOfBefore.slice(0, 8)}01`, end: lastOfBefore },
    { title: '7 days', start: addDays(today, -6), end: today },
    { title: '30 days', start: addDays(today, -29), end: today },
    { title: 'A year', start: addDays(today, -364), end: today },
  ]
}

/** Where did the money go? The same sums as `GET /v1/usage`, each with a link to its calls. */
export function UsagePage({ query }: { readonly query: URLSearchParams }) {
  const { isDeveloper } = usePermissions()
  const offered = DIMENSIONS.filter((each) => !isDeveloper || each !== 'key')
  const ranges = rangesOf(dayOf(Date.now()))
  const [thisMonth] = ranges as [Range]
  const start = query.get('start') ?? thisMonth.start
  const end = query.get('end') ?? thisMonth.end
  const by = (query.get('by') ?? 'model')
    .split(',')
    .filter((name): name is Dimension => offered.includes(name as Dimension))
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
        <Labelled title="Time">
          <Choices
            title="Time"
            options={ranges.map(({ title }) => title)}
            isChosen={(title) =>
              ranges.some((range) => range.title === title && range.start === start && range.end === end)
            }
            onChoose={(title) => {
              const range = ranges.find((range) => range.title === title) ?? thisMonth
              setQuery({ start: range.start, end: range.end, after: null })
            }}
          />
        </Labelled>
        <DateRange start={start} end={end} />
        <Labelled title="Group by">
          <Choices
            title="Group by"
            options={offered}
            nameOf={(each) => TITLES[each]}
            isChosen={(each) => by.includes(each)}
            onChoose={toggle}
          />
        </Labelled>
      </div>
      <Show resource={days} lines={5}>
        {({ data, total }) => (
          <>
            {total.requests > 0 && <Sums of={total} calls={withQuery('/requests', { start, end })} />}
            {total.requests > 0 &&
              (start === end ? (
                <Hours key={start} day={start} by={stackedBy(by)} calls={total.requests} />
              ) : (
                <Days start={start} end={end} by={stackedBy(by)} buckets={data} />
              ))}
          </>
        )}
      </Show>
      <Show resource={usage} lines={6}>
        {({ data, next, total }) =>
          data.length === 0 ? (
            <Empty
              title="No settled calls in this period."
              action={start !== thisMonth.start && <Link to="/usage">This month</Link>}
              words="Choose other dates, or make a call: usage counts it when it ends."
            />
          ) : (
            <Table
              caption="Usage"
              columns={columnsOf(by, start, end)}
              rows={identified(after === null && next === null ? inOrder(by, data) : data)}
              footer={footerOf(by, total)}
              after={after}
              next={next}
            />
          )
        }
      </Show>
    </>
  )
}

/** The sums of the report, with links to the calls that they are of. */
function Sums({ of: total, calls }: { readonly of: Bucket; readonly calls: string }) {
  return (
    <ul class="sums">
      <Sum title="Cost" value={<MoneyLink to={calls} usd={total.cost_usd} />} />
      <Sum title="At list price" value={<MoneyLink to={calls} usd={total.list_cost_usd} />} />
      <Sum
        title="Saved"
        value={<MoneyLink to={calls} usd={total.savings_usd} />}
        note={`${percent(total.savings_usd, total.list_cost_usd)} of the list price`}
      />
      {total.credited_usd > 0 && (
        <Sum
          title="Credited back"
          value={<MoneyLink to={`${calls}&flag=credited`} usd={total.credited_usd} />}
        />
      )}
      <Sum title="Calls" value={<Link to={calls}>{count(total.requests)}</Link>} />
    </ul>
  )
}

/** The chart is stacked by the first dimension that is not the day. */
const stackedBy = (by: readonly Dimension[]) => by.find((each) => each !== 'day') ?? null

interface StackProps {
  readonly by: 'model' | 'key' | null
}

const STACKED_MAX = 10_000

/** Cost per day, stacked by model or key; of more groups than can be read at once the plain days. */
function Days({
  start,
  end,
  by,
  buckets,
}: StackProps & { readonly start: string; readonly end: string; readonly buckets: readonly Bucket[] }) {
  const path = withQuery('/v1/usage', { start, end, group_by: `day,${by}`, limit: STACKED_MAX })
  const parts = useResource<Usage>(by === null ? null : path, 15_000)
  const isStacked = by !== null && parts.value !== null && !parts.value.has_more && !parts.isLoading
  const { slots, series } = stack(
    daysBetween(start, end),
    isStacked ? (parts.value?.data ?? []) : buckets,
    ({ day = '' }) => day,
    ({ model, key = '', key_name }) => {
      if (!isStacked) return { name: 'Cost' }
      const name = by === 'key' ? (key_name ?? key) : model || 'no model'
      return { name, to: withQuery('/requests', { start, end, ...(by === 'key' ? { key } : { model }) }) }
    },
  )
  return (
    <Bars
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
const CALLS_MAX = 5_000

/** The hours of a single day, from its calls. Usage has no hours, so a day of very many calls has no chart. */
function Hours({ day, by, calls: expected }: StackProps & { readonly day: string; readonly calls: number }) {
  const [calls, setCalls] = useState<readonly Call[] | null>(null)
  useEffect(() => {
    if (expected > CALLS_MAX) return
    const abort = new AbortController()
    async function read(): Promise<void> {
      const query = { start: day, end: day, state: 'settled', format: 'ndjson' }
      const reply = await fetch(inAccount(withQuery('/gateway/v1/requests', query)), { signal: abort.signal })
      if (reply.ok)
        setCalls(
          (await reply.text())
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line)),
        )
    }
    // The sums above and the table below show a failure of the gateway; the chart just stays away.
    read().catch(() => {})
    return () => abort.abort()
  }, [day, expected])
  if (expected > CALLS_MAX)
    return <p class="quiet">The hourly chart is available for days with at most {count(CALLS_MAX)} calls.</p>
  if (calls === null) return null
  const { slots, series } = stack(
    HOURS,
    calls.map((call) => ({
      ...call,
      cost_usd: call.cost_usd ?? 0,
      list_cost_usd: call.list_cost_usd ?? 0,
      requests: 1,
    })),
    ({ started_at }) => `${started_at.slice(11, 13)}:00`,
    ({ model_served, model, key_name }) => ({
      name: by === 'key' ? key_name : by === 'model' ? (model_served ?? model ?? 'no model') : 'Cost',
    }),
  )
  return <Bars title={`Cost per hour of ${day}, UTC`} slots={slots} series={series} />
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
        {name === by.at(-1) && <Doubts of={bucket} />}
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
      cell: (bucket) => (
        <Link to={callsOf(bucket)}>
          <Figure usd={bucket.cost_usd} />
        </Link>
      ),
    },
    {
      title: 'List',
      isFigure: true,
      isMinor: true,
      cell: ({ list_cost_usd }) => <Figure usd={list_cost_usd} />,
    },
    {
      title: 'Saved',
      isFigure: true,
      isMinor: true,
      cell: ({ savings_usd }) => <Figure usd={savings_usd} />,
    },
    {
      title: 'Calls',
      isFigure: true,
      cell: (bucket) => <Link to={callsOf(bucket)}>{count(bucket.requests)}</Link>,
    },
    ...TOKENS.map(([title, name]) => ({
      title,
      isFigure: true,
      isMinor: true,
      cell: (bucket: Bucket) => tokens(bucket[name]),
    })),
  ]
}

type Line = Bucket & { readonly id: string }

const identified = (buckets: readonly Bucket[]): readonly Line[] =>
  buckets.map((bucket) => ({ ...bucket, id: `${bucket.day} ${bucket.model} ${bucket.key}` }))

/** Calls of a sum that were not priced, or whose usage is an estimate and not upstream's report. */
function Doubts({
  of: { unpriced_requests: unpriced, estimated_requests: estimated },
}: {
  readonly of: Bucket
}) {
  return (
    <>
      {unpriced > 0 && <Tag kind="look">{count(unpriced)} unpriced</Tag>}
      {estimated > 0 && <Tag kind="plain">{count(estimated)} estimated</Tag>}
    </>
  )
}

/** Buckets of a list that has one page only, the most expensive first; days stay in their order. */
function inOrder(by: readonly Dimension[], buckets: readonly Bucket[]): readonly Bucket[] {
  return by.includes('day') ? buckets : [...buckets].sort((a, b) => b.cost_usd - a.cost_usd)
}

function footerOf(by: readonly Dimension[], total: Bucket) {
  return [
    'Total',
    ...Array<string>(Math.max(0, by.length - 1)).fill(''),
    <Figure key="cost" usd={total.cost_usd} />,
    <Figure key="list" usd={total.list_cost_usd} />,
    <Figure key="saved" usd={total.savings_usd} />,
    count(total.requests),
    ...TOKENS.map(([, name]) => tokens(total[name])),
  ]
}

function tokens(n: number) {
  return n === 0 ? <span class="quiet">0</span> : <span title={count(n)}>{shortCount(n)}</span>
}
