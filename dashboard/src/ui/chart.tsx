import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Bucket } from '../api.ts'
import { columnDecimals, count, dayInWords, dayOf, daysBetween, money, plural } from '../format.ts'
import { Figure } from './figures.tsx'
import { Table } from './table.tsx'

export interface Day {
  readonly day: string
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly requests: number
}

interface DayBarsProps {
  /** The chart's subject, for screen readers. */
  readonly title: string
  readonly start: string
  readonly end: string
  /** Usage by day, without the days on which nothing was used. */
  readonly buckets: readonly Bucket[]
  onPick(day: string): void
  /** A range was drawn with the pointer. */
  onBrush(start: string, end: string): void
}

const DAY_S = 86_400
const HEIGHT = 160

/**
 * Money per day as bars from zero, before a paler bar of the list price where that is more. A click opens a day, a drag
 * a range. The values of the day under the pointer are written above the chart instead of in a legend.
 */
export function DayBars({ title, start, end, buckets, onPick, onBrush }: DayBarsProps) {
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<Bars | null>(null)
  const [shown, setShown] = useState<string | null>(null)
  const days = useMemo(() => fillDays(start, end, buckets), [start, end, buckets])
  const actions = useRef({ days, pick: onPick, brush: onBrush, show: setShown })
  actions.current = { days, pick: onPick, brush: onBrush, show: setShown }

  // Another range needs another plot; other values of the same range are put into the plot below.
  useEffect(() => {
    const element = holder.current
    if (element === null) return
    let isGone = false
    void drawBars(element, () => actions.current).then((bars) => {
      if (isGone) bars.end()
      else plot.current = bars
    })
    return () => {
      isGone = true
      plot.current?.end()
      plot.current = null
    }
  }, [start, end])
  useEffect(() => plot.current?.update(days), [days])

  const decimals = columnDecimals(days.map(({ cost_usd }) => cost_usd))
  const read = days.find(({ day }) => day === shown) ?? null
  const total = days.reduce((sum, { cost_usd }) => sum + cost_usd, 0)
  const best = days.reduce<Day | null>(
    (most, day) => (day.cost_usd > (most?.cost_usd ?? 0) ? day : most),
    null,
  )
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <span class="reading" aria-hidden="true">
          {read !== null ? (
            <>
              {dayInWords(read.day)} <b>{money(read.cost_usd)}</b>
              {read.list_cost_usd > read.cost_usd && (
                <span class="quiet"> list {money(read.list_cost_usd)}</span>
              )}{' '}
              <span class="quiet">{plural(read.requests, 'call')}</span>
            </>
          ) : (
            best !== null && (
              <span class="quiet">
                {money(total)}, most on {dayInWords(best.day)}: {money(best.cost_usd)}
              </span>
            )
          )}
        </span>
      </figcaption>
      <div ref={holder} class="plot" style={{ height: `${HEIGHT}px` }} />
      <details>
        <summary>As a table</summary>
        <Table
          caption={title}
          rows={days.filter((day) => day.requests > 0).reverse()}
          keyOf={(day) => day.day}
          columns={[
            {
              title: 'Day',
              cell: ({ day }) => (
                <button type="button" class="link" onClick={() => onPick(day)}>
                  {day}
                </button>
              ),
            },
            {
              title: 'Cost, USD',
              isFigure: true,
              cell: ({ cost_usd }) => <Figure usd={cost_usd} decimals={decimals} />,
            },
            {
              title: 'List, USD',
              isFigure: true,
              cell: ({ list_cost_usd }) => <Figure usd={list_cost_usd} decimals={decimals} />,
            },
            { title: 'Calls', isFigure: true, cell: ({ requests }) => count(requests) },
          ]}
        />
      </details>
    </figure>
  )
}

function fillDays(start: string, end: string, buckets: readonly Bucket[]): readonly Day[] {
  const known = new Map(buckets.map((bucket) => [bucket.day, bucket]))
  return daysBetween(start, end).map((day) => {
    const { cost_usd = 0, list_cost_usd = 0, requests = 0 } = known.get(day) ?? {}
    return { day, cost_usd, list_cost_usd, requests }
  })
}

interface Bars {
  update(days: readonly Day[]): void
  end(): void
}

interface Actions {
  readonly days: readonly Day[]
  pick(day: string): void
  brush(start: string, end: string): void
  show(day: string | null): void
}

/** uPlot is loaded with the first chart: pages without a chart do not load it. */
async function drawBars(element: HTMLElement, actions: () => Actions): Promise<Bars> {
  const [{ default: Plot }] = await Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')])
  const { days } = actions()
  const first = days[0]?.day ?? dayOf(Date.now())
  const last = days.at(-1)?.day ?? first
  const secondsOf = (day: string) => Date.parse(day) / 1_000
  const color = (name: string) => () => getComputedStyle(document.documentElement).getPropertyValue(name)
  const isLong = days.length > 92
  const paths = Plot.paths.bars?.({ size: [0.8, 24] })
  const bar = (name: string) => ({
    stroke: color(name),
    fill: color(name),
    width: 0,
    ...(paths === undefined ? {} : { paths }),
    points: { show: false },
  })
  const axis = { stroke: color('--quiet'), ticks: { show: false }, font: FONT }

  const plot = new Plot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      padding: [8, 0, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: {
        x: { range: () => [secondsOf(first) - DAY_S / 2, secondsOf(last) + DAY_S / 2] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      tzDate: (seconds) => Plot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 24,
          space: 72,
          // A label at the very edge would be cut off.
          values: (plot, splits) =>
            splits.map((split) => (plot.valToPos(split, 'x') < EDGE_PX ? '' : dayLabel(split, isLong))),
        },
        {
          ...axis,
          side: 1,
          grid: { stroke: color('--line'), width: 1 },
          size: (_plot, values) => 12 + 7 * Math.max(0, ...(values ?? []).map(({ length }) => length)),
          space: 28,
          values: (_plot, splits) => moneyLabels(splits),
        },
      ],
      series: [{}, bar('--list'), bar('--accent')],
      hooks: {
        setCursor: [({ cursor: { idx } }) => actions().show(actions().days[idx ?? -1]?.day ?? null)],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select
            if (width < CLICK_PX) return
            actions().brush(dayAt(left), dayAt(left + width))
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false)
          },
        ],
      },
    },
    columnsOf(days),
    element,
  )
  function dayAt(left: number): string {
    const day = dayOf(Math.round(plot.posToVal(left, 'x') / DAY_S) * DAY_S * 1_000)
    return day < first ? first : day > last ? last : day
  }
  plot.over.addEventListener('click', () => {
    const day = actions().days[plot.cursor.idx ?? -1]
    if (day !== undefined && plot.select.width < CLICK_PX) actions().pick(day.day)
  })

  const ended = new AbortController()
  const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
  resized.observe(element)
  const recolored = new MutationObserver(() => plot.redraw())
  recolored.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(), {
    signal: ended.signal,
  })
  return {
    update: (days) => plot.setData(columnsOf(days)),
    end() {
      ended.abort()
      resized.disconnect()
      recolored.disconnect()
      plot.destroy()
    },
  }
}

const EDGE_PX = 20

/** A drag that is shorter is a click. */
const CLICK_PX = 4

function columnsOf(days: readonly Day[]): [number[], number[], number[]] {
  return [
    days.map(({ day }) => Date.parse(day) / 1_000),
    days.map((day) => day.list_cost_usd),
    days.map((day) => day.cost_usd),
  ]
}

const FONT = '12px system-ui, sans-serif'

/** Labels with the decimals that tell one line of the grid from the next, and no cents where there are none. */
function moneyLabels(splits: readonly number[]): string[] {
  const [first = 0, second = 1] = splits
  const part = (second - first).toFixed(9).split('.')[1]?.replace(/0+$/, '') ?? ''
  const decimals = part === '' ? 0 : Math.max(2, part.length)
  return splits.map((usd) => (usd === 0 ? '$0' : money(usd, decimals)))
}

/** A label of a long range names only the month. */
function dayLabel(seconds: number, isLong: boolean): string {
  return new Date(seconds * 1_000).toLocaleDateString('en-GB', {
    ...(isLong ? {} : { day: 'numeric' }),
    month: 'short',
    timeZone: 'UTC',
  })
}
