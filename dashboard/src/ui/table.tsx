import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, setQuery } from '../router.tsx'
import { Button } from './button.tsx'

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
  /** The name by which the list is sorted; the header is a button then. */
  readonly sort?: string
  cell(row: Row): ComponentChildren
}

interface TableProps<Row> {
  /** The caption is for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  /** One cell per column. */
  readonly footer?: readonly ComponentChildren[]
  rowClass?(row: Row): string | undefined
  /** The column by which the rows are sorted, with `-` before it from the largest. */
  readonly sorted?: string | undefined
  /** The cursors of this page and of the next one. */
  readonly after?: string | null
  readonly next?: string | null
}

export function Table<Row extends { readonly id: string }>({
  caption,
  columns,
  rows,
  footer,
  rowClass,
  sorted,
  after = null,
  next = null,
}: TableProps<Row>) {
  const isInUsd = ({ title }: Column<Row>) => typeof title === 'string' && title.endsWith(', USD')
  const classOf = (column: Column<Row>) =>
    [
      column.isFigure && 'figure',
      column.isMinor && 'minor',
      column.isWide && 'wide',
      column.lead !== undefined && `first ${column.lead}`,
      isInUsd(column) && 'usd',
    ]
      .filter(Boolean)
      .join(' ') || undefined
  const titleOf = ({ title }: Column<Row>) =>
    typeof title === 'string' ? title.replace(', USD', '') : undefined
  const isStacked = columns.some(({ lead }) => lead !== undefined)
  const table = (
    <Scroller title={caption}>
      <table class={isStacked ? 'stacked' : undefined}>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={i} scope="col" class={classOf(column)} aria-sort={orderOf(column.sort, sorted)}>
                {column.sort === undefined ? (
                  column.title
                ) : (
                  <button
                    type="button"
                    class="sort"
                    onClick={() => setQuery({ sort: nextSort(column.sort ?? '', sorted), page: null })}
                  >
                    {column.title}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} class={rowClass?.(row)}>
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
  return (
    <>
      {table}
      <Pages after={after} next={next} />
    </>
  )
}

function orderOf(sort: string | undefined, sorted = ''): 'ascending' | 'descending' | undefined {
  if (sort === undefined || sort !== sorted.replace('-', '')) return undefined
  return sorted.startsWith('-') ? 'descending' : 'ascending'
}

/** From the largest, from the smallest, then as the page sorts by itself. */
function nextSort(sort: string, sorted = ''): string | null {
  return sorted === `-${sort}` ? sort : sorted === sort ? null : `-${sort}`
}

interface ScrollerProps {
  readonly title: string
  readonly kind?: string
  readonly children: ComponentChildren
}

/** A box that scrolls sideways where its content is wider. Only then the Tab key stops at it, so that arrow keys scroll it. */
export function Scroller({ title, kind = '', children }: ScrollerProps) {
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
function Pages({ after, next }: { readonly after: string | null; readonly next: string | null }) {
  if (after === null && next === null) return null
  return (
    <nav class="pages" aria-label="More rows">
      {after !== null && <Button title="First page" onClick={() => setQuery({ after: null })} />}
      {next !== null && <Button title="Next page" onClick={() => setQuery({ after: next })} />}
    </nav>
  )
}

interface NameColumn<Row> extends Pick<Column<Row>, 'sort'> {
  readonly title?: string
  name(row: Row): string
  /** The page of the row. */
  to?(row: Row): string
  /** The state of the row, where it is not the usual one. */
  tag?(row: Row): ComponentChildren
}

/** The column of names that a list begins with. */
export function nameColumn<Row>({ title = 'Name', name, to, tag, ...rest }: NameColumn<Row>): Column<Row> {
  return {
    ...rest,
    title,
    isWide: true,
    lead: 'left',
    cell: (row) => (
      <>
        {to === undefined ? (
          <span class="name">{name(row)}</span>
        ) : (
          <Link to={to(row)} class="name opens">
            {name(row)}
          </Link>
        )}
        {tag?.(row)}
      </>
    ),
  }
}

/** The column of a command at the end of a row. */
export function actionColumn<Row>(
  title: string,
  nameOf: (row: Row) => string,
  isOffered: (row: Row) => boolean,
  onClick: (row: Row) => void,
): Column<Row> {
  return {
    title: <span class="unseen">Action</span>,
    isFigure: true,
    lead: 'right',
    cell: (row) =>
      isOffered(row) && (
        <Button title={title} label={`${title} ${nameOf(row)}`} kind="link" onClick={() => onClick(row)} />
      ),
  }
}

/** A list in a cell: all, the only one, or how many, which are named on hover. */
export function inShort(items: readonly string[] | null, noun: string): ComponentChildren {
  if (items === null) return <span class="quiet">all</span>
  return items.length === 1 ? items[0] : <span title={items.join('\n')}>{`${items.length} ${noun}`}</span>
}
