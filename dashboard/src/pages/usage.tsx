import { type Bucket, inAccount, type Usage } from '../api.ts'
import { useResource } from '../data.ts'
import { addDays, columnDecimals, count, dayOf, percent, shortCount } from '../format.ts'
import { Link, setQuery, withQuery } from '../router.tsx'
import { DayBars } from '../ui/chart.tsx'
import { Choices } from '../ui/choices.tsx'
import { Figure, Money } from '../ui/figures.tsx'
import { Empty, Show, Tag } from '../ui/states.tsx'
import { type Column, Pages, Table } from '../ui/table.tsx'

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
  const ranges = rangesOf(dayOf(Date.now()))
  const [thisMonth] = ranges as [Range]
  const start = query.get('start') ?? thisMonth.start
  const end = query.get('end') ?? thisMonth.end
  const by = (query.get('by') ?? 'model')
    .split(',')
    .filter((name): name is Dimension => DIMENSIONS.includes(name as Dimension))
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
      <header class="page">
        <h1>Usage</h1>
        <a
          href={inAccount(withQuery('/v1/usage', { ...asked, format: 'csv', limit: 10_000 }))}
          download={`usage-${start}-${end}.csv`}
        >
          CSV
        </a>
      </header>
      <div class="filters">
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
        <span class="dates">
          <input
            type="date"
            aria-label="From"
            value={start}
            max={end}
            onChange={(event) => setQuery({ start: event.currentTarget.value, after: null })}
          />
          {' – '}
          <input
            type="date"
            aria-label="To"
            value={end}
            min={start}
            onChange={(event) => setQuery({ end: event.currentTarget.value, after: null })}
          />
        </span>
        <Choices
          title="Group by"
          options={DIMENSIONS}
          isChosen={(each) => by.includes(each)}
          onChoose={toggle}
        />
      </div>
      <Show resource={days} lines={5}>
        {({ data, total }) => (
          <>
            <ul class="sums">
              <Sum title="Cost" usd={total.cost_usd} to={withQuery('/requests', { start, end })} />
              <Sum title="At list price" usd={total.list_cost_usd} />
              <Sum
                title="Saved"
                usd={total.savings_usd}
                note={percent(total.savings_usd, total.list_cost_usd)}
              />
              {total.credited_usd > 0 && <Sum title="Given back" usd={total.credited_usd} />}
              <li>
                <span>Calls</span>
                <b>{count(total.requests)}</b>
              </li>
            </ul>
            <DayBars
              title="Cost per day, USD"
              start={start}
              end={end}
              buckets={data}
              onPick={(day) => setQuery({ start: day, end: day, after: null })}
              onBrush={(start, end) => setQuery({ start, end, after: null })}
            />
          </>
        )}
      </Show>
      <Show resource={usage} lines={6}>
        {({ data, next, total }) =>
          data.length === 0 ? (
            <Empty>
              <p>No call was settled in this time.</p>
            </Empty>
          ) : (
            <>
              <Table
                caption="Usage"
                columns={columnsOf(by, data, start, end)}
                rows={after === null && next === null ? inOrder(by, data) : data}
                keyOf={({ day, model, key }) => `${day} ${model} ${key}`}
                footer={footerOf(by, data, total)}
              />
              <Pages after={after} next={next} />
            </>
          )
        }
      </Show>
    </>
  )
}

function Sum({
  title,
  usd,
  note,
  to,
}: {
  readonly title: string
  readonly usd: number
  readonly note?: string
  readonly to?: string
}) {
  return (
    <li>
      <span>{title}</span>
      <b>
        {to === undefined ? (
          <Money usd={usd} />
        ) : (
          <Link to={to}>
            <Money usd={usd} />
          </Link>
        )}
      </b>
      {note !== undefined && <span class="quiet">{note}</span>}
    </li>
  )
}

const TITLES: Record<Dimension, string> = { day: 'Day', model: 'Model', key: 'Key' }

function columnsOf(
  by: readonly Dimension[],
  rows: readonly Bucket[],
  start: string,
  end: string,
): Column<Bucket>[] {
  const decimals = columnDecimals(rows.map(({ cost_usd }) => cost_usd))
  const callsOf = ({ day, model, key }: Bucket) =>
    withQuery('/requests', { start: day ?? start, end: day ?? end, model, key })
  const dimension = (name: Dimension): Column<Bucket> => ({
    title: TITLES[name],
    isWide: name === 'key',
    lead: 'left',
    cell: (bucket) => (
      <>
        {name === 'key' ? (
          <Link to={`/keys/${bucket.key}`} class="name">
            {bucket.key_name ?? bucket.key}
          </Link>
        ) : (
          bucket[name] || <span class="quiet">no model</span>
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
          <Figure usd={bucket.cost_usd} decimals={decimals} />
        </Link>
      ),
    },
    {
      title: 'List',
      isFigure: true,
      isMinor: true,
      cell: ({ list_cost_usd }) => <Figure usd={list_cost_usd} decimals={decimals} />,
    },
    {
      title: 'Saved',
      isFigure: true,
      isMinor: true,
      cell: ({ savings_usd }) => <Figure usd={savings_usd} decimals={decimals} />,
    },
    { title: 'Calls', isFigure: true, cell: ({ requests }) => count(requests) },
    { title: 'Input', isFigure: true, isMinor: true, cell: ({ input_tokens }) => tokens(input_tokens) },
    { title: 'Output', isFigure: true, isMinor: true, cell: ({ output_tokens }) => tokens(output_tokens) },
    {
      title: 'Cache read',
      isFigure: true,
      isMinor: true,
      cell: ({ cache_read_tokens }) => tokens(cache_read_tokens),
    },
    {
      title: 'Cache write',
      isFigure: true,
      isMinor: true,
      cell: ({ cache_write_tokens }) => tokens(cache_write_tokens),
    },
  ]
}

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

/** Buckets of a list that has one page only, the dearest first; days stay in their order. */
function inOrder(by: readonly Dimension[], buckets: readonly Bucket[]): readonly Bucket[] {
  return by.includes('day') ? buckets : [...buckets].sort((a, b) => b.cost_usd - a.cost_usd)
}

function footerOf(by: readonly Dimension[], rows: readonly Bucket[], total: Bucket) {
  const decimals = columnDecimals(rows.map(({ cost_usd }) => cost_usd))
  return [
    'Total',
    ...Array<string>(Math.max(0, by.length - 1)).fill(''),
    <Figure key="cost" usd={total.cost_usd} decimals={decimals} />,
    <Figure key="list" usd={total.list_cost_usd} decimals={decimals} />,
    <Figure key="saved" usd={total.savings_usd} decimals={decimals} />,
    count(total.requests),
    tokens(total.input_tokens),
    tokens(total.output_tokens),
    tokens(total.cache_read_tokens),
    tokens(total.cache_write_tokens),
  ]
}

function tokens(n: number) {
  return n === 0 ? <span class="quiet">0</span> : <span title={count(n)}>{shortCount(n)}</span>
}
