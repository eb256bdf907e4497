/**
 * Statements for both stores. A value in a template becomes a parameter, a nested statement becomes part of the text,
 * and `byStore` holds both texts where the stores differ. The text is chosen when the statement is rendered, so the
 * code that builds it need not know the store.
 */
export interface Sql {
  readonly texts: readonly string[]
  readonly values: readonly SqlValue[]
}

/** A value of a statement. Numbers are truncated, because SQLite would bind them as REAL and sum floats. */
export type SqlValue = Sql | Dependent | Uint8Array | string | number | bigint | boolean | null

/** A value whose text depends on the store or its clock. */
type Dependent =
  | { readonly kind: 'by_store'; readonly sqlite: Sql; readonly postgres: Sql }
  | { readonly kind: 'now'; readonly atMs: number }
  | { readonly kind: 'json'; readonly value: unknown }

export function sql(texts: TemplateStringsArray, ...values: SqlValue[]): Sql {
  return { texts, values }
}

/** Text of a statement, for example a column name. Never pass user input. */
export function raw(text: string): Sql {
  return { texts: [text], values: [] }
}

export function join(parts: readonly SqlValue[], separator = ', '): Sql {
  if (parts.length === 0) return raw('')
  return { texts: ['', ...Array<string>(parts.length - 1).fill(separator), ''], values: parts }
}

export function and(conditions: readonly Sql[]): Sql {
  return join(conditions, ' AND ')
}

export function byStore(texts: { readonly sqlite: Sql | string; readonly postgres: Sql | string }): Sql {
  const statementOf = (text: Sql | string) => (typeof text === 'string' ? raw(text) : text)
  const [sqlite, postgres] = [statementOf(texts.sqlite), statementOf(texts.postgres)]
  return sql`${{ kind: 'by_store', sqlite, postgres }}`
}

/** Text that only PostgreSQL gets. A statement without other text is not run on SQLite, and returns no rows. */
export function onPostgres(text: Sql | string): Sql {
  return byStore({ sqlite: '', postgres: text })
}

/** Locks rows for an update. SQLite has a single writer and needs no lock. */
export const FOR_UPDATE = onPostgres('FOR NO KEY UPDATE')

/** Locks rows for deletion. Several nodes may delete at once, each skipping the rows of the others. */
export const FOR_DELETE = onPostgres('FOR UPDATE SKIP LOCKED')

export function json(value: unknown): SqlValue {
  return value === null ? null : { kind: 'json', value }
}

/** In production, PostgreSQL uses the database's clock, so that nodes agree. SQLite and tests use the caller's. */
export type StoreClock = 'database' | 'caller'

/** The current time. The database's clock is read when the expression is evaluated, for example after a lock. */
export function now(atMs: number): Sql {
  return sql`${{ kind: 'now', atMs }}`
}

export interface Dialect {
  readonly store: 'sqlite' | 'postgres'
  readonly clock: StoreClock
}

export type BoundScalar = string | number | bigint | boolean | Uint8Array | null

export type BoundValue = BoundScalar | readonly BoundScalar[]

export interface Statement {
  readonly text: string
  readonly values: readonly BoundValue[]
  readonly name?: string
}

export type ScalarType = 'text' | 'bigint' | 'boolean' | 'bytea' | 'jsonb'

export type ParameterType = ScalarType | `${ScalarType}[]`

export function render(statement: Sql, dialect: Dialect): Statement {
  const values: BoundValue[] = []
  return { text: textOf(statement), values }

  function textOf({ texts, values: parts }: Sql): string {
    return texts.reduce((text, after, i) => text + textOfValue(parts[i - 1] ?? null) + after)
  }

  function textOfValue(value: SqlValue): string {
    if (value === null) return 'NULL'
    if (typeof value === 'string') return parameter('text', storableText(value))
    if (typeof value === 'boolean') return parameter('boolean', bindFlag(value, dialect))
    if (typeof value === 'number') return parameter('bigint', BigInt(Math.trunc(value)))
    if (typeof value === 'bigint') return parameter('bigint', value)
    if (value instanceof Uint8Array) return parameter('bytea', value)
    if ('texts' in value) return textOf(value)
    if (value.kind === 'by_store') return textOf(value[dialect.store])
    if (value.kind === 'json') return parameter('jsonb', storableJson(value.value))
    return dialect.clock === 'database' ? 'now_ms()' : textOfValue(value.atMs)
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

/**
 * PostgreSQL stores no U+0000, and no lone surrogate in JSON. Operators cannot write these characters. In what is recorded
 * of calls, each becomes U+FFFD, in both databases.
 */
export function storableText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
}

export function storableJson(value: unknown): string {
  const json = JSON.stringify(value)
  if (!/\\u(?:0000|d[89a-f])/.test(json)) return json
  return JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? storableText(part.toWellFormed()) : part,
  )
}
