import type { Call, ListOf } from '../api.ts'
import { useResource } from '../data.ts'
import { count, duration, plural } from '../format.ts'
import { sumUsd } from '../forms/readings.ts'
import { costOf } from '../parts/call-table.tsx'
import { Money } from '../parts/figures.tsx'
import { withQuery } from '../router.tsx'

const READ_MAX = 1_000

/** The calls of one session of an agent: how many, their cost, and how long the session lasts. */
export function SessionSum({ id, base }: { readonly id: string; readonly base: string }) {
  const { value } = useResource<ListOf<Call>>(withQuery(base, { session: id, limit: READ_MAX }), 5_000)
  if (value === null || value.data.length === 0) return null
  const { data, has_more: hasMore } = value
  const times = data.flatMap(({ started_at, ended_at }) => [started_at, ended_at ?? started_at])
  const spans = times.map((at) => Date.parse(at))
  return (
    <>
      This session: <b>{hasMore ? `more than ${count(READ_MAX)} calls` : plural(data.length, 'call')}</b>
      {!hasMore && (
        <>
          {' · '}
          <Money usd={sumUsd(data.map(costOf))} /> ·{' '}
          {duration(Math.max(...spans) - Math.min(...spans)).replace(/ 0 s$/, '')}
        </>
      )}
    </>
  )
}
