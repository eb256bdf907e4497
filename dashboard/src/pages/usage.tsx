import type { Bucket } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, percent, shortCount } from '../format.ts'
import { Choices, DateRange, Download } from '../parts/choices.tsx'
import { Figure, KeyLink, Money, Stat, Sums } from '../parts/figures.tsx'
import { CostComparison, type Days } from '../parts/spend-charts.tsx'
import { Empty, Heading, Loaded, Tag } from '../parts/states.tsx'
import { type Column, Table, usdColumn } from '../parts/table.tsx'
import { Link, setQuery, withQuery } from '../router.tsx'
import { UsageBars } from './usage-charts.tsx'

const DIMENSIONS = ['day', 'model', 'key', 'person'] as const
type Dimension = (typeof DIMENSIONS)[number]
const ROWS = 200

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
  const { isDeveloper, maySeeAll } = usePermissions()
  const offered = DIMENSIONS.filter(
    (each) => maySeeAll || each === 'day' || each === 'model' || (each === 'key' && !isDeveloper),
  )
  const ranges = rangesOf(dayOf(Date.now()))
  const thisMonth = ranges['This month']
  const start = query.get('start') ?? thisMonth.start
  const end = query.get('end') ?? thisMonth.end
  const by = (query.get('by') ?? 'model')
    .split(',')
    .filter((name): name is Dimension => offered.includes(name as Dimension))
  const stackedBy = by.find((each) => each === 'model' || each === 'key') ?? null
  const after = query.get('after')
  const asked = { start, end, group_by: by.join(',') }
  const usage = useResource('/v1/usage', { ...asked, limit: ROWS, after }, 10_000)
  const days = useResource('/v1/usage', { start, end, group_by: 'day' }, 10_000)

  function toggle(dimension: Dimension): void {
    const chosen = by.includes(dimension) ? by.filter((each) => each !== dimension) : [...by, dimension]
    setQuery({ by: DIMENSIONS.filter((each) => chosen.includes(each)).join(',') || 'none', after: null })
  }

  return (
    <>
      <Heading title="Usage">
        <Download path="/v1/usage" params={asked} name={`usage-${start}-${end}`} />
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
              {total.requests > 0 && <UsageBars start={start} end={end} by={stackedBy} buckets={data} />}
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
    <Sums>
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
    </Sums>
  )
}

const TOKENS = [
  ['Input', 'input_tokens'],
  ['Output', 'output_tokens'],
  ['Cache read', 'cache_read_tokens'],
  ['Cache write', 'cache_write_tokens'],
] as const

const TITLES: Record<Dimension, string> = { day: 'Day', model: 'Model', key: 'Key', person: 'Person' }

function columnsOf(by: readonly Dimension[], start: string, end: string): Column<Line>[] {
  const callsOf = ({ day, model, key, person }: Bucket) =>
    withQuery('/requests', { start: day ?? start, end: day ?? end, model, key, person })
  const dimension = (name: Dimension): Column<Line> => ({
    title: TITLES[name],
    isWide: name === 'key' || name === 'person',
    lead: 'left',
    cell: (bucket) => (
      <>
        {name === 'key' ? (
          <KeyLink id={bucket.key ?? ''} name={bucket.key_name ?? bucket.key ?? ''} />
        ) : name === 'person' ? (
          <Link to={bucket.person == null ? undefined : `/people/${bucket.person}`} class="name">
            {bucket.person == null ? 'keys of services' : bucket.person_email || bucket.person}
          </Link>
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
  const lines = buckets.map((bucket) => ({
    ...bucket,
    id: `${bucket.day} ${bucket.model} ${bucket.key} ${bucket.person}`,
  }))
  return isAll && !by.includes('day') ? lines.sort((a, b) => b.cost_usd - a.cost_usd) : lines
}

function tokenCount(n: number) {
  return n === 0 ? <span class="quiet">0</span> : <span title={count(n)}>{shortCount(n)}</span>
}
