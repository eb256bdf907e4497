import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { count, money, plural } from '../format.ts'
import { Link } from '../router.tsx'
import { Button } from './button.tsx'
import s from './chart.module.css'
import {
  costOf,
  type Earlier,
  isHour,
  labelsOf,
  type Series,
  type Slot,
  slotInWords,
  tickLabel,
  ticksUpTo,
} from './chart-series.ts'
import { Table, usdColumn } from './table.tsx'

interface BarChartProps {
  readonly title: string
  readonly slots: readonly Slot[]
  readonly series: readonly Series[]
  readonly earlier?: Earlier | undefined
  onPick?(id: string): void
  onBrush?(first: string, last: string): void
}

const HEIGHT = 176
const TOP = 8
const BOTTOM = 24
const RIGHT = 56
const DRAG_MIN_PX = 4

/**
 * Costs as stacked bars, in front of a paler bar of the list price if that is higher. A line marks the cost of the same
 * slot of an earlier period. A click opens a bar, a drag a range.
 * The text above the chart has the values at the pointer. The table below has all values.
 */
export function BarChart({ title, slots, series, earlier, onPick, onBrush }: BarChartProps) {
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

  const before = earlier?.costs.slice(0, slots.length) ?? []
  const top = Math.max(0, ...before, ...slots.map((slot) => Math.max(slot.list, costOf(slot))))
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
    <figure class={s.chart}>
      <figcaption>
        <span>{title}</span>
        <span class={read === undefined ? 'quiet' : s.reading} aria-hidden="true">
          {read === undefined ? describePeak(slots) : describeSlot(read, series, before[at ?? 0])}
        </span>
      </figcaption>
      <div class={series.length > 1 ? s.plotted : undefined}>
        <div
          ref={holder}
          class={s.plot}
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
                  <path class={s.grid} d={`M0 ${Math.round(y(usd)) + 0.5}H${plotWidth}`} />
                  <text x={plotWidth + 8} y={y(usd) + 4}>
                    {tickLabel(usd, ticks)}
                  </text>
                </g>
              ))}
              {at !== null && (
                <rect
                  class={s.under}
                  x={low * step}
                  width={(high - low + 1) * step}
                  y={TOP}
                  height={height}
                />
              )}
              {slots.map((slot, i) => (
                <Bar key={slot.id} of={slot} x={i * step + (step - barWidth) / 2} barWidth={barWidth} y={y} />
              ))}
              <path class={s.earlier} d={before.map((usd, i) => `M${i * step} ${y(usd)}h${step}`).join('')} />
              {labelsOf(slots, step).map(([i, label]) => (
                <text key={i} class={s.slot} x={Math.max(24, (i + 0.5) * step)} y={HEIGHT - 6}>
                  {label}
                </text>
              ))}
            </svg>
          )}
        </div>
        <Legend of={series} slots={slots} earlier={earlier} />
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
        <rect class={s.list} x={x} width={barWidth} y={y(slot.list)} height={base - y(slot.list)} />
      )}
      {parts}
    </>
  )
}

function describeSlot(slot: Slot, series: readonly Series[], before: number | undefined): string {
  const parts = series.map(({ name }, i) => [name, slot.costs[i] ?? 0] as const)
  return [
    `${slotInWords(slot.id)} ${money(costOf(slot))}`,
    ...(slot.list > costOf(slot) ? [`list ${money(slot.list)}`] : []),
    ...(before === undefined ? [] : [`before ${money(before)}`]),
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

interface LegendProps {
  readonly of: readonly Series[]
  readonly slots: readonly Slot[]
  readonly earlier: Earlier | undefined
}

const sumOf = (costs: readonly number[]) => costs.reduce((sum, usd) => sum + usd, 0)

/** Names each series with its sum: beside stacked bars, and in one line below others. */
function Legend({ of: series, slots, earlier }: LegendProps) {
  const list = sumOf(slots.map((slot) => slot.list))
  const cost = sumOf(slots.map(costOf))
  const entry = (name: string, usd: number, swatch: ComponentChildren, to?: string) => (
    <li key={name}>
      {swatch}
      <Link to={to} class="name">
        {name}
      </Link>{' '}
      <span>{money(usd)}</span>
    </li>
  )
  return (
    <ul class={series.length > 1 ? s.labels : `${s.labels} ${s.line}`}>
      {earlier !== undefined &&
        entry(earlier.name, sumOf(earlier.costs), <span class={`${s.swatch} ${s.earlier}`} />, earlier.to)}
      {list > cost && entry('At list price', list, <span class={`${s.swatch} ${s.list}`} />)}
      {series
        .map(({ name, to }, i) =>
          entry(
            name,
            sumOf(slots.map(({ costs }) => costs[i] ?? 0)),
            <span class={s.swatch} style={{ background: `var(--s${i})` }} />,
            to,
          ),
        )
        .reverse()}
    </ul>
  )
}
