import { kindOf } from '../tables.ts'
import {
  type BoundScalar,
  type BoundValue,
  type Dialect,
  type ParameterType,
  render,
  type ScalarType,
  type Sql,
  type Statement,
  storableText,
} from './sql.ts'

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

/** A statement for several rows of values. SQLite runs it for each row; PostgreSQL runs another one for all rows. */
export interface BulkStatement {
  readonly perRow: Prepared
  readonly rows: readonly Values[]
  /** Null: there is nothing to do. */
  forAllRows(): BoundStatement | null
}

/** A prepared statement. The template's parts are parameter types, or SQL without values. */
export function prepare(
  texts: readonly string[],
  ...parts: (ParameterType | Sql)[]
): (values: Values) => BulkStatement {
  const perRow = new Prepared(texts, parts)
  return (values) => {
    return { perRow, rows: [values], forAllRows: () => ({ prepared: perRow, values }) }
  }
}

export const NO_STATEMENT: BulkStatement = {
  perRow: new Prepared([''], []),
  rows: [],
  forAllRows: () => null,
}

type ForKeys = (keys: List) => BulkStatement

/** Reads the rows whose column has one of the keys. PostgreSQL locks them in the order of the keys. */
export function prepareReads(select: string, column: string, lock = ''): ForKeys {
  return prepareForKeys(select, column, '', `ORDER BY ${column} ${lock}`)
}

/** Locks the rows with one of these ids that meet the condition. SQLite has a single writer and needs no lock. */
export function prepareLocks(table: string, condition: string): ForKeys {
  const text = [
    `SELECT id FROM ${table} WHERE id = ANY (`,
    `) AND (${condition}) ORDER BY id FOR NO KEY UPDATE`,
  ]
  const all = new Prepared(text, ['text[]'])
  return (ids) => ({
    ...NO_STATEMENT,
    forAllRows: () => (ids.length === 0 ? null : { prepared: all, values: [ids] }),
  })
}

/** PostgreSQL has room for 64 locks per transaction (`max_locks_per_transaction`). A batch has at most three such lists. */
const LINE_MAX = 16

/**
 * Waits in line for what `names` selects, before a later statement locks rows. When a row changes, PostgreSQL wakes all
 * who wait for it, and any of them gets it: behind 50 nodes, some waited until they failed. Whoever waits for an advisory
 * lock is woken alone, in turn. No decision depends on a line, so further rows have none.
 */
export function prepareLine(names: readonly [string, ...string[]]): (...lists: List[]) => BulkStatement {
  const [first, ...rest] = names
  const last = rest.pop() ?? ''
  const wait = 'SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM ('
  const text = [`${wait}${first}`, ...rest, `${last} ORDER BY 1) AS line (name)`]
  const all = new Prepared(
    text,
    text.slice(1).map(() => 'text[]'),
  )
  return (...lists) => ({
    ...NO_STATEMENT,
    forAllRows: () => ({ prepared: all, values: lists.map((ids) => ids.toSorted().slice(0, LINE_MAX)) }),
  })
}

/** Deletes the rows with these ids, and returns them. */
export function prepareDeletes(table: string, returning: string): ForKeys {
  return prepareForKeys(`DELETE FROM ${table}`, 'id', `RETURNING ${returning}`, `RETURNING ${returning}`)
}

function prepareForKeys(head: string, column: string, sqliteTail: string, postgresTail: string): ForKeys {
  const type = column === 'digest' ? 'bytea' : 'text'
  const one = new Prepared([`${head} WHERE ${column} = `, ` ${sqliteTail}`], [type])
  const value = type === 'bytea' ? 'unhex(value)' : 'value'
  const listed = new Prepared(
    [`${head} WHERE ${column} IN (SELECT ${value} FROM json_each(`, `)) ${sqliteTail}`],
    ['text'],
  )
  const all = new Prepared([`${head} WHERE ${column} = ANY (`, `) ${postgresTail}`], [`${type}[]`])
  return (keys) => ({
    perRow: keys.length === 1 ? one : listed,
    rows: keys.length <= 1 ? keys.map((key) => [key]) : [[jsonList(keys)]],
    forAllRows: () => (keys.length === 0 ? null : { prepared: all, values: [keys] }),
  })
}

function jsonList(keys: List): string {
  return JSON.stringify(keys.map((key) => (typeof key === 'string' ? key : Buffer.from(key).toString('hex'))))
}

type PrepareRows = (rows: readonly Values[]) => BulkStatement

export function prepareInserts(table: string, columns: readonly string[], suffix = ''): PrepareRows {
  const head = `INSERT INTO ${table} (${columns.join(', ')})`
  const types = typesOf(table, columns)
  const perRow = new Prepared([`${head} VALUES (`, ...separators(types), `) ${suffix}`], types)
  const all = new Prepared(
    [`${head} SELECT * FROM unnest(`, ...separators(types), `) ${suffix}`],
    arraysOf(types),
  )
  return prepareForRows(perRow, all)
}

/** Updates the rows whose `where` columns have these values, which follow the values to set. */
export function prepareUpdates(table: string, set: readonly string[], where: readonly string[]): PrepareRows {
  const types = typesOf(table, [...set, ...where])
  const [firstSet = '', ...otherSets] = set.map((column) => `${column} = `)
  const conditions = where.map((column, i) => `${i === 0 ? ' WHERE' : ' AND'} ${column} = `)
  const texts = [`UPDATE ${table} SET ${firstSet}`, ...otherSets.map((text) => `, ${text}`), ...conditions]
  const perRow = new Prepared([...texts, ''], types)
  const sets = set.map((column, i) => `${column} = v.c${i}`).join(', ')
  const matches = where.map((column, i) => `${table}.${column} = v.c${set.length + i}`).join(' AND ')
  const names = types.map((_, i) => `c${i}`).join(', ')
  const update = `UPDATE ${table} SET ${sets} FROM unnest(`
  const from = `) AS v (${names}) WHERE ${matches}`
  return prepareForRows(perRow, new Prepared([update, ...separators(types), from], arraysOf(types)))
}

function prepareForRows(perRow: Prepared, all: Prepared): PrepareRows {
  return (rows) => ({
    perRow,
    rows,
    forAllRows: () => (rows.length === 0 ? null : { prepared: all, values: columnsOf(rows) }),
  })
}

/** The values of each column, as an array for `unnest`. */
function columnsOf(rows: readonly Values[]): Values {
  const [first = []] = rows
  return first.map((_, i) => rows.map((row) => scalar(row[i] ?? null)))
}

function scalar(value: BoundValue): BoundScalar {
  if (Array.isArray(value)) throw new Error('a value of a row is an array')
  return boundValue(value, 'postgres') as BoundScalar
}

function separators(types: readonly ScalarType[]): string[] {
  return types.slice(1).map(() => ', ')
}

function arraysOf(types: readonly ScalarType[]): ParameterType[] {
  return types.map((type) => `${type}[]` as const)
}

const TYPES = {
  text: 'text',
  integer: 'bigint',
  amount: 'bigint',
  flag: 'boolean',
  json: 'jsonb',
  bytes: 'bytea',
} as const

function typesOf(table: string, columns: readonly string[]): ScalarType[] {
  return columns.map((column) => TYPES[kindOf(table, column) ?? 'text'])
}

/** Binds whole numbers as numbers: a bigint takes three times as long to bind. SQLite has no booleans. */
export function boundValue(value: BoundValue, store: Dialect['store']): BoundValue {
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value === 'string') return storableText(value)
  return typeof value === 'boolean' && store === 'sqlite' ? Number(value) : value
}

export type Runnable = Sql | BulkStatement

/** Null: there is nothing to do. */
export function postgresStatement(runnable: Runnable, dialect: Dialect): Statement | null {
  if ('texts' in runnable) return render(runnable, dialect)
  const bound = runnable.forAllRows()
  if (bound === null) return null
  const { prepared, values } = bound
  return {
    text: prepared.textFor(dialect),
    values: values.map((value) => boundValue(value, 'postgres')),
    name: prepared.name,
  }
}
