import { type ComponentChildren, Fragment } from 'preact'
import { Link, type Query, setQuery } from '../router.tsx'
import { Button } from './button.tsx'
import { Figure, RelativeTime } from './figures.tsx'
import s from './table.module.css'

export interface Column<Row> {
  readonly title: ComponentChildren
  readonly isFigure?: boolean
  /** Hidden on a narrow screen. */
  readonly isMinor?: boolean
  /** Hidden already on a small laptop. */
  readonly isLeast?: boolean
  /** Takes the remaining width. Text that does not fit is cut off. */
  readonly isWide?: boolean
  /** On a phone, the title stands before the value, as it does before figures. */
  readonly isTitled?: boolean
  /** On a phone, where a row has two lines: this column is on this side of the first line. Others are on the second. */
  readonly lead?: 'left' | 'right'
  /** The value of the parameter `sort` for this column. Its header becomes a button. */
  readonly sort?: string | undefined
  cell(row: Row): ComponentChildren
}

export interface TableProps<Row> {
  readonly caption: string
  readonly kind?: 'bill'
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  /** The last row: its title, and the amounts of its record. */
  readonly total?: readonly [title: string, row: Row] | undefined
  rowClass?(row: Row): 'dead' | 'current' | 'line' | undefined
  /** The title above consecutive rows that belong together. */
  groupOf?(row: Row): string
  /** The parameter `sort`: a column, with a leading `-` for the largest first. */
  readonly sorted?: string | undefined
  readonly after?: string | null
  readonly next?: string | null
}

export function Table<Row extends { readonly id: string }>({
  caption,
  kind,
  columns,
  rows,
  total,
  rowClass,
  groupOf,
  sorted,
  after = null,
  next = null,
}: TableProps<Row>) {
  const isInUsd = ({ title }: Column<Row>) => typeof title === 'string' && title.endsWith(', USD')
  const classOf = (column: Column<Row>) =>
    [
      column.isFigure && s.figure,
      column.isMinor && 'minor',
      column.isLeast && 'least',
      column.isWide && s.wide,
      column.isTitled && s.titled,
      column.lead !== undefined && `${s.first} ${s[column.lead]}`,
      isInUsd(column) && s.usd,
    ]
      .filter(Boolean)
      .join(' ') || undefined
  const titleOf = ({ title }: Column<Row>) =>
    typeof title === 'string' ? title.replace(', USD', '') : undefined
  const isStacked = columns.some(({ lead }) => lead !== undefined)
  const table = (
    <section class={kind === undefined ? s.table : `${s.table} ${s[kind]}`} aria-label={caption}>
      <table class={isStacked ? s.stacked : undefined}>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={i} scope="col" class={classOf(column)} aria-sort={orderOf(column.sort, sorted)}>
                {column.sort === undefined ? (
                  column.title
                ) : (
                  <button
                    type="button"
                    class={s.sort}
                    onClick={() => setQuery({ sort: nextSort(column.sort ?? '', sorted) })}
                  >
                    {column.title}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => {
            const group = groupOf?.(row)
            const before = rows[at - 1]
            const isFirst = group !== undefined && (before === undefined || groupOf?.(before) !== group)
            return (
              <Fragment key={row.id}>
                {isFirst && (
                  <tr class={s.group}>
                    <th colSpan={columns.length} scope="rowgroup">
                      {group}
                    </th>
                  </tr>
                )}
                <tr class={s[rowClass?.(row) ?? '']}>
                  {columns.map((column, i) => (
                    <td key={i} class={classOf(column)} data-title={titleOf(column)}>
                      {column.cell(row)}
                    </td>
                  ))}
                </tr>
              </Fragment>
            )
          })}
        </tbody>
        {total !== undefined && (
          <tfoot>
            <tr>
              {columns.map((column, i) => (
                <td key={i} class={classOf(column)} data-title={titleOf(column)}>
                  {i === 0 ? total[0] : column.isFigure && column.cell(total[1])}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  )
  return (
    <>
      {table}
      <Pages first={after === null ? null : { after: null }} next={next === null ? null : { after: next }} />
    </>
  )
}

function orderOf(sort: string | undefined, sorted = ''): 'ascending' | 'descending' | undefined {
  if (sort === undefined || sort !== sorted.replace('-', '')) return undefined
  return sorted.startsWith('-') ? 'descending' : 'ascending'
}

/** A header sorts by the largest first, then by the smallest, then as by default. */
function nextSort(sort: string, sorted = ''): string | null {
  return sorted === `-${sort}` ? sort : sorted === sort ? null : `-${sort}`
}

interface PagesProps {
  /** The query of the first page and of the next page. Null: there is no such page. */
  readonly first: Query | null
  readonly next: Query | null
}

/** Buttons for the first and the next page of a list. For the previous page, use the browser's back button. */
function Pages({ first, next }: PagesProps) {
  if (first === null && next === null) return null
  return (
    <nav class={s.pages} aria-label="More rows">
      {first !== null && <Button title="First page" onClick={() => setQuery(first)} />}
      {next !== null && <Button title="Next page" onClick={() => setQuery(next)} />}
    </nav>
  )
}

interface NameColumn<Row> extends Pick<Column<Row>, 'sort'> {
  readonly title?: string
  name(row: Row): string
  to?(row: Row): string
  /** The state of the row, if it is unusual. */
  tag?(row: Row): ComponentChildren
}

export function nameColumn<Row>({ title = 'Name', name, to, tag, ...rest }: NameColumn<Row>): Column<Row> {
  return {
    ...rest,
    title,
    isWide: true,
    lead: 'left',
    cell: (row) => (
      <>
        <Link to={to?.(row)} class="name opens">
          {name(row)}
        </Link>
        {tag?.(row)}
      </>
    ),
  }
}

/** A column of amounts. Its title, or the title of an earlier column, names the unit. */
export const usdColumn = <Row,>(
  title: string,
  usdOf: (row: Row) => number,
  more: Partial<Column<Row>> = {},
): Column<Row> => ({ title, isFigure: true, cell: (row) => <Figure usd={usdOf(row)} />, ...more })

/** A column of times in words. `never`: what null means. */
export const timeColumn = <Row,>(
  title: string,
  atOf: (row: Row) => string | null,
  { never, ...more }: Partial<Column<Row>> & { readonly never?: string } = {},
): Column<Row> => ({
  title,
  isTitled: true,
  cell: (row) => <RelativeTime at={atOf(row)} {...(never === undefined ? {} : { never })} />,
  ...more,
})

/** A column of buttons. */
export const actionColumn = <Row,>(cell: Column<Row>['cell']): Column<Row> => ({
  title: <span class="unseen">Actions</span>,
  isFigure: true,
  lead: 'right',
  cell,
})

/** A list in a cell: `all`, the only item, or the number of items, with the items on hover. */
export function shortList(items: readonly string[] | null, noun: string): ComponentChildren {
  if (items === null) return <span class="quiet">all</span>
  return items.length === 1 ? items[0] : <span title={items.join('\n')}>{`${items.length} ${noun}`}</span>
}
