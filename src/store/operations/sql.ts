import { TABLES } from '../schema.ts'

/**
 * Statements for both stores. A value in a template becomes a parameter, a nested statement becomes part of the text,
 * and `byStore` holds both texts where the stores differ. The text is chosen when the statement is rendered, so the
 * code that builds it need not know the store.
 */
export class Sql {
  readonly texts: readonly string[]
  readonly values: readonly SqlValue[]

  constructor(texts: readonly string[], values: readonly SqlValue[]) {
    this.texts = texts
    this.values = values
  }
}

/**
 * A value of a statement. Numbers are truncated to integers: SQLite would bind them as REAL, and sums would become
 * floats.
 */
export type SqlValue = Sql | ByStore | Now | Json | Uint8Array | string | number | bigint | boolean | null

export function sql(texts: TemplateStringsArray, ...values: SqlValue[]): Sql {
  return new Sql(texts, values)
}

/** Trusted text, such as a column name. Never user input. */
export function raw(text: string): Sql {
  return new Sql([text], [])
}

export function join(parts: readonly SqlValue[], separator = ', '): Sql {
  if (parts.length === 0) return raw('')
  return new Sql(['', ...Array<string>(parts.length - 1).fill(separator), ''], parts)
}

export function and(conditions: readonly Sql[]): Sql {
  return join(conditions, ' AND ')
}

class ByStore {
  readonly sqlite: Sql
  readonly postgres: Sql

  constructor(sqlite: Sql, postgres: Sql) {
    this.sqlite = sqlite
    this.postgres = postgres
  }
}

export function byStore(texts: { readonly sqlite: Sql | string; readonly postgres: Sql | string }): Sql {
  const [sqlite, postgres] = [texts.sqlite, texts.postgres].map((text) =>
    typeof text === 'string' ? raw(text) : text,
  ) as [Sql, Sql]
  return sql`${new ByStore(sqlite, postgres)}`
}

/** Text that only PostgreSQL gets. A statement of only such text is not run on SQLite, and returns no rows. */
export function onPostgres(text: Sql | string): Sql {
  return byStore({ sqlite: '', postgres: text })
}

/** Locks rows for an update. SQLite has a single writer and needs no lock. */
export const FOR_UPDATE = onPostgres('FOR NO KEY UPDATE')

/** Locks rows for deletion. Several nodes may delete at once, each skipping the rows of the others. */
export const FOR_DELETE = onPostgres('FOR UPDATE SKIP LOCKED')

class Json {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

export function json(value: unknown): Json | null {
  return value === null ? null : new Json(value)
}

class Now {
  readonly atMs: number

  constructor(atMs: number) {
    this.atMs = atMs
  }
}

/**
 * The clock that decides the expiry of keys. In production it is the database's, so that nodes with different clocks
 * agree. Tests move the caller's clock, and SQLite has no other.
 */
export type StoreClock = 'database' | 'caller'

/** The current time. The database's clock is read when the expression is evaluated, for example after a lock. */
export function now(atMs: number): Sql {
  return sql`${new Now(atMs)}`
}

export interface Dialect {
  readonly store: 'sqlite' | 'postgres'
  readonly clock: StoreClock
  toJson(value: unknown): string
}

export type BoundValue = string | number | bigint | boolean | Uint8Array | List | null

export interface Statement {
  readonly text: string
  readonly values: readonly BoundValue[]
  /** The name of a prepared statement, for connections that cache them. */
  readonly name?: string
}

/** PostgreSQL type of a parameter. */
export type ParameterType = 'text' | 'bigint' | 'boolean' | 'bytea' | 'jsonb' | 'text[]' | 'bytea[]'

/** A value of a prepared statement. A number is truncated to an integer. */
export type PreparedValue = Json | string | number | bigint | boolean | Uint8Array | List | null

export class Filled {
  readonly prepared: Prepared
  readonly values: readonly PreparedValue[]

  constructor(prepared: Prepared, values: readonly PreparedValue[]) {
    this.prepared = prepared
    this.values = values
  }
}

let preparedStatements = 0

/**
 * A statement whose text is rendered once per store, for the hot path: rendering a template takes longer than running
 * it.
 */
export class Prepared {
  readonly name: string
  readonly types: readonly ParameterType[]
  readonly #texts: readonly string[]
  readonly #parts: readonly (ParameterType | Sql)[]
  readonly #rendered: { sqlite?: string; postgres?: string } = {}

  constructor(texts: readonly string[], parts: readonly (ParameterType | Sql)[]) {
    this.name = `s${preparedStatements++}`
    this.#texts = texts
    this.#parts = parts
    this.types = parts.filter((part) => typeof part === 'string')
  }

  textFor(dialect: Dialect): string {
    const known = this.#rendered[dialect.store]
    if (known !== undefined) return known
    let parameters = 0
    const text = this.#texts.reduce((before, after, i) => {
      const part = this.#parts[i - 1]
      if (typeof part !== 'string') return before + render(part ?? raw(''), dialect).text + after
      parameters += 1
      return `${before}${dialect.store === 'sqlite' ? '?' : `$${parameters}::${part}`}${after}`
    })
    this.#rendered[dialect.store] = text
    return text
  }
}

type Fill = (values: readonly PreparedValue[]) => Filled

/** A prepared statement. The template's parts are parameter types, or SQL without values. */
export function prepare(texts: readonly string[], ...parts: (ParameterType | Sql)[]): Fill {
  const prepared = new Prepared(texts, parts)
  return (values) => new Filled(prepared, values)
}

const TYPES = { text: 'text', integer: 'bigint', flag: 'boolean', json: 'jsonb', bytes: 'bytea' } as const

function typesOf(table: string, columns: readonly string[]): ParameterType[] {
  const known = TABLES.find(({ name }) => name === table)?.columns ?? []
  return columns.map((column) => TYPES[known.find(({ name }) => name === column)?.kind ?? 'text'])
}

/** A prepared INSERT of these columns; `rest` follows the values. */
export function prepareInsert(table: string, columns: readonly string[], rest = ''): Fill {
  const head = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (`
  const between = Array<string>(columns.length - 1).fill(', ')
  return prepare([head, ...between, `) ${rest}`], ...typesOf(table, columns))
}

/** A prepared UPDATE that sets the columns `set` of the row selected by the columns `where`. */
export function prepareUpdate(table: string, set: readonly string[], where: readonly string[]): Fill {
  const texts = [...set.map((column, i) => `${i === 0 ? '' : ', '}${column} = `)]
  const conditions = where.map((column, i) => `${i === 0 ? ' WHERE ' : ' AND '}${column} = `)
  const [first = '', ...others] = [...texts, ...conditions]
  return prepare([`UPDATE ${table} SET ${first}`, ...others, ''], ...typesOf(table, [...set, ...where]))
}

/** A condition in the template of `prepareLists`: the column has one of the values of a list. */
class OneOf {
  readonly column: string
  readonly type: 'text' | 'bytea'

  constructor(column: string, type: 'text' | 'bytea') {
    this.column = column
    this.type = type
  }
}

export function oneOf(column: string, type: 'text' | 'bytea'): OneOf {
  return new OneOf(column, type)
}

type List = readonly (string | Uint8Array)[]

export class FilledLists {
  readonly prepared: PreparedLists
  readonly lists: readonly List[]

  constructor(prepared: PreparedLists, lists: readonly List[]) {
    this.prepared = prepared
    this.lists = lists
  }
}

/**
 * A prepared statement over lists of values. A list is one array in PostgreSQL. In SQLite each value is a parameter,
 * and lists are padded with their last value to a power of two, so that there are few texts.
 */
class PreparedLists {
  readonly #texts: readonly string[]
  readonly #parts: readonly (OneOf | Sql)[]
  readonly #bySizes = new Map<string, Prepared>()

  constructor(texts: readonly string[], parts: readonly (OneOf | Sql)[]) {
    this.#texts = texts
    this.#parts = parts
  }

  fill(lists: readonly List[], { store }: Dialect): Filled {
    if (store === 'postgres') return new Filled(this.#preparedFor(lists, 'arrays', store), lists)
    const padded = lists.map(padToPower)
    const sizes = padded.map(({ length }) => length).join()
    const values: (string | Uint8Array)[] = []
    for (const list of padded) values.push(...list)
    return new Filled(this.#preparedFor(padded, sizes, store), values)
  }

  #preparedFor(lists: readonly List[], sizes: string, store: Dialect['store']): Prepared {
    let prepared = this.#bySizes.get(sizes)
    if (prepared === undefined) {
      prepared = this.#prepare(lists, store)
      this.#bySizes.set(sizes, prepared)
    }
    return prepared
  }

  #prepare(lists: readonly List[], store: Dialect['store']): Prepared {
    const texts: string[] = [this.#texts[0] ?? '']
    const parts: (ParameterType | Sql)[] = []
    const sizes = lists.map(({ length }) => length)
    for (const [i, part] of this.#parts.entries()) {
      const after = this.#texts[i + 1] ?? ''
      if (part instanceof Sql) {
        parts.push(part)
        texts.push(after)
        continue
      }
      const isArray = store === 'postgres'
      texts[texts.length - 1] += `${part.column} ${isArray ? '= ANY' : 'IN'} (`
      const types: ParameterType[] = isArray ? [`${part.type}[]`] : Array(sizes.shift() ?? 1).fill(part.type)
      parts.push(...types)
      texts.push(...Array<string>(types.length - 1).fill(', '), `)${after}`)
    }
    return new Prepared(texts, parts)
  }
}

function padToPower(list: List): List {
  let size = 1
  while (size < list.length) size *= 2
  return size === list.length ? list : [...list, ...Array(size - list.length).fill(list.at(-1) ?? null)]
}

/** The lists are those of the conditions, in the order of the template. */
export function prepareLists(texts: readonly string[], ...parts: (OneOf | Sql)[]) {
  const prepared = new PreparedLists(texts, parts)
  return (...lists: List[]) => new FilledLists(prepared, lists)
}

export type Runnable = Sql | Filled | FilledLists

export function render(statement: Runnable, dialect: Dialect): Statement {
  if (statement instanceof FilledLists)
    return renderFilled(statement.prepared.fill(statement.lists, dialect), dialect)
  if (statement instanceof Filled) return renderFilled(statement, dialect)
  const values: BoundValue[] = []
  return { text: textOf(statement), values }

  function textOf({ texts, values: parts }: Sql): string {
    return texts.reduce((text, after, i) => text + partOf(parts[i - 1] ?? null) + after)
  }

  function partOf(part: SqlValue): string {
    if (part === null) return 'NULL'
    if (part instanceof Sql) return textOf(part)
    if (part instanceof ByStore) return textOf(part[dialect.store])
    if (part instanceof Now) return dialect.clock === 'database' ? 'now_ms()' : partOf(part.atMs)
    if (part instanceof Json) return parameter('jsonb', dialect.toJson(part.value))
    if (part instanceof Uint8Array) return parameter('bytea', part)
    if (typeof part === 'string') return parameter('text', part)
    if (typeof part === 'boolean') return parameter('boolean', flagFor(part, dialect))
    return parameter('bigint', typeof part === 'bigint' ? part : BigInt(Math.trunc(part)))
  }

  /** Without a cast, PostgreSQL would treat the parameter as text. */
  function parameter(type: string, value: BoundValue): string {
    const place = values.push(value)
    return dialect.store === 'sqlite' ? '?' : `$${place}::${type}`
  }
}

function renderFilled({ prepared, values }: Filled, dialect: Dialect): Statement {
  const bound: BoundValue[] = []
  for (const value of values) bound.push(boundValue(value, dialect))
  return { text: prepared.textFor(dialect), values: bound, name: prepared.name }
}

/**
 * A whole number stays a number: a bigint takes three times as long to bind. SQLite binds it as REAL and stores an
 * integer, because the columns are strict.
 */
function boundValue(value: PreparedValue, { store, toJson }: Dialect): BoundValue {
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value === 'boolean') return store === 'sqlite' ? Number(value) : value
  return value instanceof Json ? toJson(value.value) : value
}

/** SQLite has no booleans. */
function flagFor(flag: boolean, { store }: Dialect): bigint | boolean {
  return store === 'sqlite' ? BigInt(flag) : flag
}
