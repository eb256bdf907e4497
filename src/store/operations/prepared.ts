import { kindOf } from '../schema.ts'
import { type BoundValue, type Dialect, type ParameterType, render, type Sql, type Statement } from './sql.ts'

/** Statements of the hot path. Their texts are rendered once, because rendering a template takes longer than running it. */

type List = readonly (string | Uint8Array)[]
type Values = readonly BoundValue[]

let preparedStatements = 0

export class Prepared {
  readonly name: string
  readonly #texts: readonly string[]
  readonly #parts: readonly (ParameterType | Sql)[]
  readonly #rendered: { sqlite?: string; postgres?: string } = {}

  constructor(texts: readonly string[], parts: readonly (ParameterType | Sql)[]) {
    this.name = `s${preparedStatements++}`
    this.#texts = texts
    this.#parts = parts
  }

  textFor(dialect: Dialect): string {
    const known = this.#rendered[dialect.store]
    if (known !== undefined) return known
    let parameters = 0
    const text = this.#texts.reduce((before, after, i) => {
      const part = this.#parts[i - 1]
      if (typeof part === 'object') return before + render(part, dialect).text + after
      parameters += 1
      return `${before}${dialect.store === 'sqlite' ? '?' : `$${parameters}::${part}`}${after}`
    })
    this.#rendered[dialect.store] = text
    return text
  }
}

interface BoundStatement {
  readonly prepared: Prepared
  readonly values: Values
}

/** A statement for several rows of values. SQLite runs it for each row; PostgreSQL gets one for many rows. */
export interface BulkStatement {
  readonly perRow: Prepared
  readonly rows: readonly Values[]
  /** Whether the transaction must fail if a row changes nothing. */
  readonly mustChange: boolean
  grouped(): readonly BoundStatement[]
}

/** A prepared statement. The template's parts are parameter types, or SQL without values. */
export function prepare(
  texts: readonly string[],
  ...parts: (ParameterType | Sql)[]
): (values: Values) => BulkStatement {
  const perRow = new Prepared(texts, parts)
  return (values) => {
    return { perRow, rows: [values], mustChange: false, grouped: () => [{ prepared: perRow, values }] }
  }
}

export const NO_STATEMENT: BulkStatement = {
  perRow: new Prepared([''], []),
  rows: [],
  mustChange: false,
  grouped: () => [],
}

/** Reads the rows whose column has one of the keys. PostgreSQL locks them in the order of the keys. */
export function prepareReads(select: string, column: string, lock = ''): (keys: List) => BulkStatement {
  const type = column === 'digest' ? 'bytea' : 'text'
  const perRow = new Prepared([`${select} WHERE ${column} = `, ''], [type])
  const all = new Prepared(
    [`${select} WHERE ${column} = ANY (`, `) ORDER BY ${column} ${lock}`],
    [`${type}[]`],
  )
  return (keys) => ({
    perRow,
    rows: keys.map((key) => [key]),
    mustChange: false,
    grouped: () => (keys.length === 0 ? [] : [{ prepared: all, values: [keys] }]),
  })
}

type PrepareRows = (rows: readonly Values[]) => BulkStatement

export function prepareInserts(table: string, columns: readonly string[], suffix = ''): PrepareRows {
  const head = `INSERT INTO ${table} (${columns.join(', ')}) VALUES`
  const types = typesOf(table, columns)
  return prepareForRows(prepareRows(head, types, 1, ` ${suffix}`), false, (count) =>
    prepareRows(head, types, count, ` ${suffix}`),
  )
}

/** Updates the rows that match `where` and `also`. `mustChange`: fails unless each row of values matches a row. */
export function prepareUpdates(
  table: string,
  set: readonly string[],
  where: readonly string[],
  { also = 'true', mustChange = false } = {},
): PrepareRows {
  const types = typesOf(table, [...set, ...where])
  const [firstSet = '', ...otherSets] = set.map((column) => `${column} = `)
  const conditions = where.map((column, i) => `${i === 0 ? ' WHERE' : ' AND'} ${column} = `)
  const texts = [`UPDATE ${table} SET ${firstSet}`, ...otherSets.map((text) => `, ${text}`), ...conditions]
  const sets = set.map((column, i) => `${column} = v.c${i}`).join(', ')
  const matches = where.map((column, i) => `${table}.${column} = v.c${set.length + i}`).join(' AND ')
  const names = types.map((_, i) => `c${i}`).join(', ')
  return prepareForRows(new Prepared([...texts, ` AND ${also}`], types), mustChange, (count) => {
    const update = `UPDATE ${table} SET ${sets} FROM (VALUES`
    const from = `) AS v (${names}) WHERE ${matches} AND ${also}`
    if (!mustChange) return prepareRows(update, types, count, from)
    // Divides by zero, and so fails, if a row matched nothing.
    const isComplete = ` RETURNING 1) SELECT 1 / (count(*) / ${count}) FROM changed`
    return prepareRows(`WITH changed AS (${update}`, types, count, from + isComplete)
  })
}

function prepareRows(head: string, types: readonly ParameterType[], count: number, tail: string): Prepared {
  const row = [' (', ...Array<string>(types.length - 1).fill(', '), ')']
  const texts = [head]
  for (let i = 0; i < count; i += 1) {
    texts[texts.length - 1] += `${i === 0 ? '' : ','}${row[0]}`
    texts.push(...row.slice(1))
  }
  texts[texts.length - 1] += tail
  return new Prepared(texts, Array<readonly ParameterType[]>(count).fill(types).flat())
}

/** PostgreSQL gets the rows in groups of these sizes, so that there are few statements to prepare. */
const GROUP_SIZES = [16, 8, 4, 2, 1]

function prepareForRows(
  perRow: Prepared,
  mustChange: boolean,
  prepareCount: (count: number) => Prepared,
): PrepareRows {
  const byCount = new Map<number, Prepared>()

  function preparedFor(count: number): Prepared {
    const prepared = byCount.get(count) ?? prepareCount(count)
    byCount.set(count, prepared)
    return prepared
  }

  function grouped(rows: readonly Values[]): BoundStatement[] {
    const statements: BoundStatement[] = []
    for (let at = 0; at < rows.length; ) {
      const count = GROUP_SIZES.find((size) => size <= rows.length - at) ?? 1
      statements.push({ prepared: preparedFor(count), values: rows.slice(at, at + count).flat() as Values })
      at += count
    }
    return statements
  }

  return (rows) => ({ perRow, rows, mustChange, grouped: () => grouped(rows) })
}

const TYPES = { text: 'text', integer: 'bigint', flag: 'boolean', json: 'jsonb', bytes: 'bytea' } as const

function typesOf(table: string, columns: readonly string[]): ParameterType[] {
  return columns.map((column) => TYPES[kindOf(table, column) ?? 'text'])
}

/** Binds whole numbers as numbers: a bigint takes three times as long to bind. SQLite has no booleans. */
export function boundValue(value: BoundValue, store: Dialect['store']): BoundValue {
  if (typeof value === 'number') return Math.trunc(value)
  return typeof value === 'boolean' && store === 'sqlite' ? Number(value) : value
}

export type Runnable = Sql | BulkStatement

export function statementsOf(runnable: Runnable, dialect: Dialect): readonly Statement[] {
  if ('texts' in runnable) return [render(runnable, dialect)]
  return runnable.grouped().map(({ prepared, values }) => ({
    text: prepared.textFor(dialect),
    values: values.map((value) => boundValue(value, 'postgres')),
    name: prepared.name,
  }))
}
