/** A row as it comes from PostgreSQL: int8 as bigint, int4 as number, bool as boolean, bytea as Buffer. */
export type Row = Record<string, unknown>

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

export function bool(row: Row, column: string): boolean {
  const value = row[column]
  if (typeof value !== 'boolean' && typeof value !== 'bigint') throw new Error(`${column} is not a flag`)
  return value === true || value === 1n
}

/** What the JSON of a column holds, already parsed, or null. */
export function jsonOrNull<T>(row: Row, column: string): T | null {
  return isNothing(row[column]) ? null : (row[column] as T)
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined
}
