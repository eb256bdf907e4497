import { dayAndMonth, daysBetween, figure, monthShort, weekday } from '../format.ts'

export interface Slot {
  /** `2026-11-16`, or an hour: `2026-11-16 14:00`. */
  readonly id: string
  /** The cost of each series, in the order of `series`. */
  readonly costs: readonly number[]
  readonly list: number
  readonly requests: number
}

export interface Series {
  readonly name: string
  readonly to?: string | undefined
}

/** The costs of an earlier period, slot by slot, to compare with. */
export interface Earlier {
  readonly name: string
  readonly to: string
  readonly costs: readonly number[]
}

export const costOf = ({ costs }: Slot) => costs.reduce((sum, usd) => sum + usd, 0)

interface CostSums {
  readonly day?: string | undefined
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly requests: number
}

/** One series of days. Usage by day leaves out days without calls, which the chart shows too. */
export const costPerDay = (start: string, end: string, buckets: readonly CostSums[]) =>
  stackBy(
    daysBetween(start, end),
    buckets,
    ({ day = '' }) => day,
    () => ({ name: 'Cost' }),
  )

/** Maximum number of series. The smaller ones are shown as one. */
const PARTS_MAX = 6

/** Sums items into bars (`slotOf`) and the parts of bars (`nameOf`). */
export function stackBy<Item extends CostSums>(
  ids: readonly string[],
  items: readonly Item[],
  slotOf: (item: Item) => string,
  nameOf: (item: Item) => Series,
): { readonly slots: readonly Slot[]; readonly series: readonly Series[] } {
  const sums = new Map<string, { series: Series; usd: number }>()
  for (const item of items) {
    const series = nameOf(item)
    const sum = sums.get(series.name) ?? { series, usd: 0 }
    sum.usd += item.cost_usd
    sums.set(series.name, sum)
  }
  const ranked = [...sums.values()].sort((a, b) => b.usd - a.usd).map(({ series }) => series)
  const named = ranked.length <= PARTS_MAX ? ranked : ranked.slice(0, PARTS_MAX - 1)
  const others = ranked.length - named.length
  const series = others === 0 ? named : [...named, { name: `${others} others` }]
  const part = new Map(named.map(({ name }, i) => [name, i]))
  const slots = new Map<string, { id: string; costs: number[]; list: number; requests: number }>()
  for (const id of ids) slots.set(id, { id, costs: series.map(() => 0), list: 0, requests: 0 })
  for (const item of items) {
    const slot = slots.get(slotOf(item))
    if (slot === undefined) continue
    const i = part.get(nameOf(item).name) ?? series.length - 1
    slot.costs[i] = (slot.costs[i] ?? 0) + item.cost_usd
    slot.list += item.list_cost_usd
    slot.requests += item.requests
  }
  return { slots: [...slots.values()], series }
}

export function ticksUpTo(most: number): readonly number[] {
  if (most <= 0) return [0, 1]
  const rough = most / 4
  const size = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * size >= rough) ?? 10) * size
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step)
}

export function tickLabel(usd: number, ticks: readonly number[]): string {
  const step = ticks[1] ?? 1
  if (usd === 0) return '$0'
  const decimals = /\.(\d*[1-9])/.exec(step.toFixed(12))?.[1]?.length ?? 0
  return `$${figure(usd, decimals === 0 ? 0 : Math.max(2, decimals))}`
}

export const isHour = (id = '') => id.includes(':')

export const slotInWords = (id: string) => (isHour(id) ? `${id} UTC` : `${weekday(id)} ${id}`)

const LABEL_SPACING_PX = 64

/** The labels of the axis: hours of a day, days, or months of a long range. */
export function labelsOf(slots: readonly Slot[], step: number): readonly (readonly [number, string])[] {
  const isLong = slots.length > 92
  const every = Math.max(1, Math.ceil(LABEL_SPACING_PX / step))
  const hours = [2, 3, 6].find((n) => n >= every) ?? 12
  return slots.flatMap(({ id }, i): (readonly [number, string])[] => {
    if (isHour(id) && slots.length === 24) return i % hours === 0 ? [[i, id.slice(11)]] : []
    if (isHour(id)) return i % 24 === 0 ? [[i, dayAndMonth(id.slice(0, 10))]] : []
    if (isLong) return id.endsWith('-01') && (slots.length - i) * step > 20 ? [[i, monthShort(id)]] : []
    return (slots.length - 1 - i) % every === 0 ? [[i, dayAndMonth(id)]] : []
  })
}
