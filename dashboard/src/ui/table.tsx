import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { setQuery } from '../router.tsx'

export interface Column<Row> {
  readonly title: ComponentChildren
  /** Figures stand to the right, in tabular digits. */
  readonly isFigure?: boolean
  /** A minor column is left out on a narrow screen. */
  readonly isMinor?: boolean
  /** A wide column takes the room that is left, and its text is cut off where there is none. */
  readonly isWide?: boolean
  /** On a phone, where a row is two lines, this column stands in the first line, on this side; columns without it follow. */
  readonly lead?: 'left' | 'right'
  cell(row: Row): ComponentChildren
}

export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  footer,
  rowClass,
}: {
  /** The caption is for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** One cell per column. */
  readonly footer?: readonly ComponentChildren[]
  rowClass?(row: Row): string | undefined
}) {
  const classOf = ({ isFigure, isMinor, isWide, lead }: Column<Row>) =>
    [isFigure && 'figure', isMinor && 'minor', isWide && 'wide', lead !== undefined && `first ${lead}`]
      .filter(Boolean)
      .join(' ') || undefined
  const titleOf = ({ title }: Column<Row>) => (typeof title === 'string' ? title : undefined)
  const isStacked = columns.some(({ lead }) => lead !== undefined)
  return (
    <Scroller title={caption}>
      <table class={isStacked ? 'stacked' : undefined}>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={i} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map((column, i) => (
                <td key={i} class={classOf(column)} data-title={titleOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {footer !== undefined && (
          <tfoot>
            <tr>
              {columns.map((column, i) => (
                <td key={i} class={classOf(column)} data-title={titleOf(column)}>
                  {footer[i]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </Scroller>
  )
}

/** A box that scrolls sideways where its content is wider. Only then the Tab key stops at it, so that arrow keys scroll it. */
export function Scroller({
  title,
  kind = '',
  children,
}: {
  readonly title: string
  readonly kind?: string
  readonly children: ComponentChildren
}) {
  const section = useRef<HTMLElement>(null)
  const [isScrolling, setScrolling] = useState(false)
  useEffect(() => {
    const element = section.current
    if (element === null) return
    const measure = () => setScrolling(element.scrollWidth > element.clientWidth)
    const resized = new ResizeObserver(measure)
    resized.observe(element)
    if (element.firstElementChild !== null) resized.observe(element.firstElementChild)
    return () => resized.disconnect()
  }, [])
  return (
    <section ref={section} class={`table ${kind}`} tabIndex={isScrolling ? 0 : undefined} aria-label={title}>
      {children}
    </section>
  )
}

/** The pages before and after, by cursor: `after` in the URL, and the browser's own way back. */
export function Pages({ after, next }: { readonly after: string | null; readonly next: string | null }) {
  if (after === null && next === null) return null
  return (
    <nav class="pages" aria-label="More rows">
      {after !== null && (
        <button type="button" onClick={() => setQuery({ after: null })}>
          First page
        </button>
      )}
      {next !== null && (
        <button type="button" onClick={() => setQuery({ after: next })}>
          Next page
        </button>
      )}
    </nav>
  )
}
