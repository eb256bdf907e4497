import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly title: ComponentChildren
  /** Figures stand to the right, in tabular digits. */
  readonly isFigure?: boolean
  /** What a narrow screen can do without. */
  readonly isMinor?: boolean
  /** Takes the room that is left, and is cut off where there is none. */
  readonly isWide?: boolean
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
  /** For those who do not see the page. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** One cell per column. */
  readonly footer?: readonly ComponentChildren[]
  rowClass?(row: Row): string | undefined
}) {
  const classOf = ({ isFigure, isMinor, isWide }: Column<Row>) =>
    [isFigure && 'figure', isMinor && 'minor', isWide && 'wide'].filter(Boolean).join(' ') || undefined
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways must be reachable by keyboard.
    <section class="table" tabIndex={0} aria-label={caption}>
      <table>
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
                <td key={i} class={classOf(column)}>
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
                <td key={i} class={classOf(column)}>
                  {footer[i]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  )
}

/** The pages before and after, by cursor: `after` in the URL, and the browser's own way back. */
export function Pages({
  after,
  next,
  onNext,
  onFirst,
}: {
  readonly after: string | null
  readonly next: string | null
  onNext(cursor: string): void
  onFirst(): void
}) {
  if (after === null && next === null) return null
  return (
    <nav class="pages" aria-label="Pages">
      {after !== null && (
        <button type="button" onClick={onFirst}>
          First page
        </button>
      )}
      {next !== null && (
        <button type="button" onClick={() => onNext(next)}>
          Next page
        </button>
      )}
    </nav>
  )
}
