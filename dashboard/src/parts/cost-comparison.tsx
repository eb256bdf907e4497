import type { Usage } from '../api.ts'
import { useResource } from '../data.ts'
import { addDays, daysBetween, daysInWords, percent } from '../format.ts'
import { withQuery } from '../router.tsx'
import { Money } from './figures.tsx'

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
