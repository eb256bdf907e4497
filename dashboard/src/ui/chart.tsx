import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { count, dayAndMonth, daysBetween, figure, money, monthShort, plural, weekday } from '../format.ts'
import { Link } from '../router.tsx'
import { Button } from './button.tsx'
import { Table, usdColumn } from './table.tsx'

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

interface BarChartProps {
  readonly title: string
  readonly slots: readonly Slot[]
  readonly series: readonly Series[]
  onPick?(id: string): void
  onBrush?(first: string, last: string): void
}

const HEIGHT = 176
const TOP = 8
const BOTTOM = 24
const RIGHT = 56
const DRAG_MIN_PX = 4

const costOf = ({ costs }: Slot) => costs.reduce((sum, usd) => sum + usd, 0)

/**
 * Costs as stacked bars, in front of a paler bar of the list price if that is higher. A click opens a bar, a drag a range.
 * The text above the chart has the values at the pointer. The table below has all values.
 */
export function BarChart({ title, slots, series, onPick, onBrush }: BarChartProps) {
  const holder = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  const [at, setAt] = useState<number | null>(null)
  const [from, setFrom] = useState<number | null>(null)
  useLayoutEffect(() => {
    const element = holder.current
    if (element === null) return
    const measure = () => setWidth(element.clientWidth)
    const resized = new ResizeObserver(measure)
    resized.observe(element)
    measure()
    return () => resized.disconnect()
  }, [])

  const top = Math.max(0, ...slots.map((slot) => Math.max(slot.list, costOf(slot))))
  const ticks = ticksUpTo(top)
  const longest = Math.max(...ticks.map((usd) => tickLabel(usd, ticks).length))
  const plotWidth = Math.max(1, width - Math.max(RIGHT, (longest + 1) * 8))
  const step = plotWidth / Math.max(1, slots.length)
  const barWidth = Math.max(1, Math.min(step * (step > 6 ? 0.78 : 0.9), 40))
  const most = Math.max(top * 1.04, ticks.at(-1) ?? 1)
  const height = HEIGHT - TOP - BOTTOM
  const y = (usd: number) => TOP + height * (1 - usd / most)
  const indexAt = (event: PointerEvent) => {
    const left = event.clientX - (holder.current?.getBoundingClientRect().left ?? 0)
    return Math.max(0, Math.min(slots.length - 1, Math.floor(left / step)))
  }
  const read = at === null ? undefined : slots[at]
  const [here, start] = [at ?? 0, from ?? at ?? 0]
  const [low, high] = [Math.min(start, here), Math.max(start, here)]
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <span class={read === undefined ? 'quiet' : 'reading'} aria-hidden="true">
          {read === undefined ? describePeak(slots) : describeSlot(read, series)}
        </span>
      </figcaption>
      <div class={series.length > 1 ? 'plotted' : undefined}>
        <div
          ref={holder}
          class="plot"
          style={{ height: `${HEIGHT}px` }}
          onPointerMove={(event) => setAt(indexAt(event))}
          onPointerLeave={() => {
            setAt(null)
            setFrom(null)
          }}
          onPointerDown={(event) => event.button === 0 && setFrom(indexAt(event))}
          onPointerUp={(event) => {
            const to = indexAt(event)
            const [one, other] = [slots[Math.min(from ?? to, to)], slots[Math.max(from ?? to, to)]]
            setFrom(null)
            if (one === undefined || other === undefined || from === null) return
            if (one === other || Math.abs(to - from) * step < DRAG_MIN_PX) onPick?.(one.id)
            else onBrush?.(one.id, other.id)
          }}
        >
          {width > 0 && (
            <svg
              width={width}
              height={HEIGHT}
              role="img"
              aria-label={`${title}. The table below has its values.`}
            >
              {ticks.map((usd) => (
                <g key={usd}>
                  <path class="grid" d={`M0 ${Math.round(y(usd)) + 0.5}H${plotWidth}`} />
                  <text x={plotWidth + 8} y={y(usd) + 4}>
                    {tickLabel(usd, ticks)}
                  </text>
                </g>
              ))}
              {at !== null && (
                <rect class="under" x={low * step} width={(high - low + 1) * step} y={TOP} height={height} />
              )}
              {slots.map((slot, i) => (
                <Bar key={slot.id} of={slot} x={i * step + (step - barWidth) / 2} barWidth={barWidth} y={y} />
              ))}
              {labelsOf(slots, step).map(([i, label]) => (
                <text key={i} class="slot" x={Math.max(24, (i + 0.5) * step)} y={HEIGHT - 6}>
                  {label}
                </text>
              ))}
            </svg>
          )}
        </div>
        {series.length > 1 && <Legend of={series} slots={slots} />}
      </div>
      <details>
        <summary>View as a table</summary>
        <Table
          caption={title}
          rows={slots.filter(({ requests }) => requests > 0).toReversed()}
          columns={[
            {
              title: isHour(slots[0]?.id) ? 'Hour, UTC' : 'Day',
              cell: ({ id }) =>
                onPick === undefined ? id : <Button title={id} kind="link" onClick={() => onPick(id)} />,
            },
            ...(series.length < 2 ? [] : series).map(({ name }, i) =>
              usdColumn<Slot>(name, ({ costs }) => costs[i] ?? 0),
            ),
            usdColumn('Cost, USD', costOf),
            usdColumn<Slot>('List, USD', ({ list }) => list),
            { title: 'Calls', isFigure: true, cell: ({ requests }) => count(requests) },
          ]}
        />
      </details>
    </figure>
  )
}

interface BarProps {
  readonly of: Slot
  readonly x: number
  readonly barWidth: number
  y(usd: number): number
}

function Bar({ of: slot, x, barWidth, y }: BarProps) {
  const base = y(0)
  let below = 0
  const parts = slot.costs.map((usd, i) => {
    const bottom = y(below)
    below += usd
    return usd === 0 ? null : (
      <rect
        key={i}
        style={{ fill: `var(--s${i})` }}
        x={x}
        width={barWidth}
        y={y(below)}
        height={bottom - y(below)}
      />
    )
  })
  return (
    <>
      {slot.list > below && (
        <rect class="list" x={x} width={barWidth} y={y(slot.list)} height={base - y(slot.list)} />
      )}
      {parts}
    </>
  )
}

function describeSlot(slot: Slot, series: readonly Series[]): string {
  const parts = series.map(({ name }, i) => [name, slot.costs[i] ?? 0] as const)
  return [
    `${slotInWords(slot.id)} ${money(costOf(slot))}`,
    ...(slot.list > costOf(slot) ? [`list ${money(slot.list)}`] : []),
    plural(slot.requests, 'call'),
    ...(series.length < 2
      ? []
      : parts.filter(([, usd]) => usd > 0).map(([name, usd]) => `${name} ${money(usd)}`)),
  ].join(' · ')
}

function describePeak(slots: readonly Slot[]): string {
  const most = slots.toSorted((a, b) => costOf(b) - costOf(a))[0]
  if (most === undefined || costOf(most) === 0 || slots.length === 1) return ''
  return `highest ${isHour(most.id) ? 'at' : 'on'} ${most.id}: ${money(costOf(most))}`
}

function Legend({ of: series, slots }: { readonly of: readonly Series[]; readonly slots: readonly Slot[] }) {
  const list = slots.reduce((sum, slot) => sum + slot.list, 0)
  const cost = slots.reduce((sum, slot) => sum + costOf(slot), 0)
  return (
    <ul class="labels">
      {list > cost && (
        <li>
          <span class="swatch list" />
          <span class="quiet">at list price</span> <span class="quiet">{money(list)}</span>
        </li>
      )}
      {series
        .map(({ name, to }, i) => (
          <li key={name}>
            <span class="swatch" style={{ background: `var(--s${i})` }} />
            <Link to={to} class="name">
              {name}
            </Link>{' '}
            <span>{money(slots.reduce((sum, { costs }) => sum + (costs[i] ?? 0), 0))}</span>
          </li>
        ))
        .reverse()}
    </ul>
  )
}

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

function ticksUpTo(most: number): readonly number[] {
  if (most <= 0) return [0, 1]
  const rough = most / 4
  const size = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * size >= rough) ?? 10) * size
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step)
}

function tickLabel(usd: number, ticks: readonly number[]): string {
  const step = ticks[1] ?? 1
  if (usd === 0) return '$0'
  const decimals = /\.(\d*[1-9])/.exec(step.toFixed(12))?.[1]?.length ?? 0
  return `$${figure(usd, decimals === 0 ? 0 : Math.max(2, decimals))}`
}

const isHour = (id = '') => id.includes(':')

const slotInWords = (id: string) => (isHour(id) ? `${id} UTC` : `${weekday(id)} ${id}`)

const LABEL_SPACING_PX = 64

/** The labels of the axis: hours of a day, days, or months of a long range. */
function labelsOf(slots: readonly Slot[], step: number): readonly (readonly [number, string])[] {
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
