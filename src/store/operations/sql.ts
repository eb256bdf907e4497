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

/** A value of a statement. Numbers are truncated, because SQLite would bind them as REAL and sum floats. */
export type SqlValue = Sql | ByStore | Now | Json | Uint8Array | string | number | bigint | boolean | null

export function sql(texts: TemplateStringsArray, ...values: SqlValue[]): Sql {
  return new Sql(texts, values)
}

/** Text of a statement, for example a column name. Never pass user input. */
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

/** Text that only PostgreSQL gets. A statement without other text is not run on SQLite, and returns no rows. */
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

/** In production, PostgreSQL uses the database's clock, so that nodes agree. SQLite and tests use the caller's. */
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

export type BoundValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | readonly (string | Uint8Array)[]
  | null

export interface Statement {
  readonly text: string
  readonly values: readonly BoundValue[]
  readonly name?: string
}

export type ParameterType = 'text' | 'bigint' | 'boolean' | 'bytea' | 'jsonb' | 'text[]' | 'bytea[]'

export function render(statement: Sql, dialect: Dialect): Statement {
  const values: BoundValue[] = []
  return { text: textOf(statement), values }

  function textOf({ texts, values: parts }: Sql): string {
    return texts.reduce((text, after, i) => text + textOfValue(parts[i - 1] ?? null) + after)
  }

  function textOfValue(value: SqlValue): string {
    if (value === null) return 'NULL'
    if (value instanceof Sql) return textOf(value)
    if (value instanceof ByStore) return textOf(value[dialect.store])
    if (value instanceof Now) return dialect.clock === 'database' ? 'now_ms()' : textOfValue(value.atMs)
    if (value instanceof Json) return parameter('jsonb', dialect.toJson(value.value))
    if (value instanceof Uint8Array) return parameter('bytea', value)
    if (typeof value === 'string') return parameter('text', value)
    if (typeof value === 'boolean') return parameter('boolean', bindFlag(value, dialect))
    return parameter('bigint', typeof value === 'bigint' ? value : BigInt(Math.trunc(value)))
  }

  /** Without a cast, PostgreSQL would treat the parameter as text. */
  function parameter(type: string, value: BoundValue): string {
    const position = values.push(value)
    return dialect.store === 'sqlite' ? '?' : `$${position}::${type}`
  }
}

/** SQLite has no booleans. */
function bindFlag(flag: boolean, { store }: Dialect): bigint | boolean {
  return store === 'sqlite' ? BigInt(flag) : flag
}
