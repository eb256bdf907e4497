import type pg from 'pg'
import type { BoundScalar, BoundValue, Statement } from '../operations/sql.ts'
import type { Row } from '../rows.ts'

export interface StatementResult {
  readonly rows: readonly Row[]
  /** For example `COMMIT` or `INSERT 0 1`. */
  readonly tag: string
}

type Deliver = (error: Error | null, results: readonly StatementResult[]) => void

/** The columns of a statement's rows, by the names of the statements that the connection has prepared. */
type PreparedColumns = Map<string, readonly RowColumn[]>

interface RowColumn {
  readonly name: string
  readonly parse: (value: string) => unknown
}

const preparedOn = new WeakMap<pg.Connection, PreparedColumns>()

/**
 * Statements that PostgreSQL gets in one message, with one Sync. It runs them in order, answers in one message, and skips
 * the rest after a failure. With pg's own pipeline each statement is a write, an answer and a wake-up of both sides, while
 * others wait for the locks. Rows are described once per connection and prepared statement.
 */
export class StatementGroup implements pg.Submittable {
  /** pg puts its timeout around `callback`. */
  callback: Deliver
  readonly query_timeout: number
  readonly #statements: readonly Statement[]
  readonly #typeOf: TypeParsers
  #prepared: PreparedColumns = new Map()
  readonly #results: StatementResult[] = []
  #columns: readonly RowColumn[] | null = null
  #rows: Row[] = []

  constructor(statements: readonly Statement[], typeOf: TypeParsers, timeoutMs: number, deliver: Deliver) {
    this.#statements = statements
    this.#typeOf = typeOf
    this.query_timeout = timeoutMs
    this.callback = deliver
  }

  submit(connection: pg.Connection): void {
    this.#prepared = preparedOn.get(connection) ?? new Map()
    preparedOn.set(connection, this.#prepared)
    connection.stream.cork()
    for (const statement of this.#statements) this.#send(connection, statement)
    connection.sync()
    connection.stream.uncork()
  }

  #send(connection: pg.Connection, { text, values, name = '' }: Statement): void {
    const isPrepared = this.#prepared.has(name)
    // A statement of this name may remain from a group that failed.
    if (!isPrepared && name !== '') connection.close({ type: 'S', name }, true)
    if (!isPrepared) connection.parse({ text, name, types: [] }, true)
    connection.bind({ statement: name, values: values.map(wireValue) }, true)
    if (!isPrepared) connection.describe({ type: 'P' }, true)
    connection.execute(null, true)
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: this.#typeOf(dataTypeID) }))
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, unknown> = {}
    for (const [i, { name, parse }] of this.#columnsNow().entries()) {
      const value = fields[i] ?? null
      row[name] = value === null ? null : parse(value)
    }
    this.#rows.push(row as Row)
  }

  #columnsNow(): readonly RowColumn[] {
    const { name = '' } = this.#statements[this.#results.length] ?? {}
    this.#columns ??= this.#prepared.get(name) ?? []
    return this.#columns
  }

  handleCommandComplete({ text: tag }: { readonly text: string }): void {
    const { name } = this.#statements[this.#results.length] ?? {}
    if (name !== undefined) this.#prepared.set(name, this.#columnsNow())
    this.#results.push({ rows: this.#rows, tag })
    this.#rows = []
    this.#columns = null
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' })
  }

  handleError(error: Error): void {
    // Perhaps a prepared statement is gone, as behind a pooler. The next group prepares its statements again.
    this.#prepared.clear()
    this.callback(error, [])
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#results)
  }
}

type TypeParsers = (oid: number) => (value: string) => unknown

function wireValue(value: BoundValue): string | Buffer | null {
  if (value instanceof Uint8Array) return asBuffer(value)
  if (Array.isArray(value)) return `{${value.map(arrayElement).join(',')}}`
  return value === null ? null : String(value)
}

function arrayElement(value: BoundScalar): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`
  return value instanceof Uint8Array ? `"\\\\x${asBuffer(value).toString('hex')}"` : String(value)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
