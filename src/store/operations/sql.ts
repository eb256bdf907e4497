import { monthOf } from '../../ledger/calendar.ts'

/**
 * Statements that both stores understand. A value that stands in a template becomes a parameter, and a statement within
 * a statement becomes part of its text; where the two stores must differ, `byStore` holds both texts. The text for a store
 * is chosen when the statement is rendered, so that the code that puts it together need not know the store.
 */
export class Sql {
  readonly texts: readonly string[]
  readonly values: readonly SqlValue[]

  constructor(texts: readonly string[], values: readonly SqlValue[]) {
    this.texts = texts
    this.values = values
  }
}

/** A number is truncated to an integer: a JS number would be bound as REAL by SQLite, and sums leave the integers. */
export type SqlValue = Sql | ByStore | Now | Json | Uint8Array | string | number | bigint | boolean | null

export function sql(texts: TemplateStringsArray, ...values: SqlValue[]): Sql {
  return new Sql(texts, values)
}

/** Text of our own, such as the name of a column. Never text from outside. */
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

/** Text that is empty in SQLite. A whole statement of this kind is not run there, and gives no rows. */
export function onPostgres(text: Sql | string): Sql {
  return byStore({ sqlite: '', postgres: text })
}

/** The lock of rows to be updated. SQLite has one writer at a time, and nothing is locked there. */
export const FOR_UPDATE = onPostgres('FOR NO KEY UPDATE')

/** The lock of rows to be deleted: several nodes may delete at once, and each skips the rows of the others. */
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
 * The clock that tells the time when a key is looked at. In production it is the database's, of which there is one: nodes
 * whose clocks differ agree on which keys are in force. Tests move the caller's clock, and SQLite has no other.
 */
export type StoreClock = 'database' | 'caller'

/** The present instant. The database's clock is read where the expression stands: after a lock, say. */
export function now(atMs: number): Sql {
  return sql`${new Now(atMs)}`
}

/** The month of the present instant. */
export function monthNow(atMs: number): Sql {
  return byStore({ sqlite: sql`${monthOf(atMs)}`, postgres: sql`(SELECT month_of(${now(atMs)}))` })
}

export interface Dialect {
  readonly store: 'sqlite' | 'postgres'
  readonly clock: StoreClock
  toJson(value: unknown): string
}

export interface Statement {
  readonly text: string
  readonly values: readonly (string | bigint | boolean | Uint8Array)[]
}

export function render(statement: Sql, dialect: Dialect): Statement {
  const values: (string | bigint | boolean | Uint8Array)[] = []
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
    if (typeof part === 'boolean') return parameter('boolean', part)
    return parameter('bigint', typeof part === 'bigint' ? part : BigInt(Math.trunc(part)))
  }

  /** A parameter with its type: where only a cast would tell, PostgreSQL takes a parameter for text. */
  function parameter(type: string, value: string | bigint | boolean | Uint8Array): string {
    const place = values.push(value)
    return dialect.store === 'sqlite' ? '?' : `$${place}::${type}`
  }
}
