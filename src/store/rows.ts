/** A row of either store: integers are bigint, JSON of PostgreSQL is parsed, a flag is a boolean or 0 and 1. */
export type Row = Readonly<Record<string, unknown>>

export function present(row: Row | undefined): Row {
  if (row === undefined) throw new Error('a row that must be there is not')
  return row
}

export function text(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`${column} is not text`)
  return value
}

export function textOrNull(row: Row, column: string): string | null {
  return isNothing(row[column]) ? null : text(row, column)
}

export function number(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'bigint' && typeof value !== 'number') throw new Error(`${column} is not a number`)
  return Number(value)
}

export function numberOrNull(row: Row, column: string): number | null {
  return isNothing(row[column]) ? null : number(row, column)
}

export function nanos(row: Row, column: string): bigint {
  const value = row[column]
  if (typeof value !== 'bigint') throw new Error(`${column} is not an integer`)
  return value
}

export function nanosOrNull(row: Row, column: string): bigint | null {
  return isNothing(row[column]) ? null : nanos(row, column)
}

/** An integer without limit, which is read as text: PostgreSQL's sums are numeric. */
export function sum(row: Row, column: string): bigint {
  return BigInt(text(row, column))
}

export function bool(row: Row, column: string): boolean {
  const value = row[column]
  if (typeof value !== 'boolean' && typeof value !== 'bigint') throw new Error(`${column} is not a flag`)
  return value === true || value === 1n
}

/** A list of texts in a column of JSON, which SQLite gives as text. */
export function namesOf(column: unknown): readonly string[] | null {
  return typeof column === 'string' ? (JSON.parse(column) as string[]) : (column as readonly string[] | null)
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined
}
