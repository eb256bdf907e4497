import pg from 'pg'
import { migrate } from '../postgres/migrate.ts'
import { failureOf, unconnected } from '../postgres/outcome.ts'
import { openPool } from '../postgres/pool.ts'
import type { Batch } from './batch.ts'
import { copyIn } from './copy-in.ts'
import { type MoveState, parseState } from './move-state.ts'
import { MOVED_TABLES, type MovedTable, STORE_MOVE } from './moved-tables.ts'
import { summed, type Totals } from './source.ts'

/** A database that says nothing for so long is taken for gone. */
const SILENT_MS = 120_000

/** What looks at all rows has the time that it takes. */
const READ_MS = 7 * 24 * 60 * 60 * 1000

/** Someone else changed how far the move is. */
export class MovedByAnother extends Error {}

/** The database that the books are moved into. */
export interface Target {
  readState(): Promise<MoveState | null>
  /** The tables that have something in them that is not this move's. */
  occupied(installation: string): Promise<readonly string[]>
  begin(state: MoveState): Promise<void>
  /** Takes away what an unfinished move has brought, and begins anew. */
  beginAgain(former: MoveState, state: MoveState): Promise<void>
  /** Brings the rows of the batch, and says so, in one transaction. */
  write(table: MovedTable, batch: Batch, state: MoveState, next: () => MoveState): Promise<void>
  advance(state: MoveState, next: MoveState): Promise<void>
  makeMonths(instants: readonly number[]): Promise<void>
  analyse(): Promise<void>
  totals(table: MovedTable): Promise<Totals>
  close(): Promise<void>
}

/** With what the role or the database sets for nodes put aside. */
const BEGIN = `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0`

/** Brings its schema to this version; one of a newer version is refused. */
export async function openTarget(url: string): Promise<Target> {
  await migrate(url)
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tollgate migrate-store',
    connectionTimeoutMillis: 5_000,
    query_timeout: SILENT_MS,
    keepAlive: true,
  })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    throw unconnected(error)
  })
  const reads = openPool({ url, connectionsMax: 1, statementMs: READ_MS, settings: { deadlines: false } })

  async function transaction(work: () => Promise<void>): Promise<void> {
    try {
      await client.query(BEGIN)
      await work()
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      throw error instanceof MovedByAnother ? error : failureOf(error)
    }
  }

  /** Only if nobody else has moved on from the state that this one knows. */
  async function replaceState(state: MoveState, next: MoveState): Promise<void> {
    const { rowCount } = await client.query('UPDATE setting SET value = $3 WHERE name = $1 AND value = $2', [
      STORE_MOVE,
      ...[state, next].map((each) => JSON.stringify(each)),
    ])
    if (rowCount !== 1) throw anotherMove()
  }

  return {
    async readState() {
      const [row] = await reads.query('SELECT value FROM setting WHERE name = $1', [STORE_MOVE])
      return row === undefined ? null : parseState(String(row['value']))
    },

    async occupied(installation) {
      const [row] = await reads.query(
        `SELECT ${MOVED_TABLES.map(({ name }) => `EXISTS (SELECT FROM ${name} WHERE ${STRANGE[name] ?? 'true'}) AS ${name}`)}
         WHERE $1::text IS NOT NULL`,
        [installation],
      )
      return MOVED_TABLES.filter(({ name }) => row?.[name] === true).map(({ noun }) => noun)
    },

    begin: (state) =>
      transaction(async () => {
        const { rowCount } = await client.query(
          'INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [STORE_MOVE, JSON.stringify(state)],
        )
        if (rowCount !== 1) throw anotherMove()
      }),

    beginAgain: (former, state) =>
      transaction(async () => {
        await replaceState(former, state)
        const emptied = MOVED_TABLES.map(({ name }) => name).filter((name) => name !== 'setting')
        await client.query(`TRUNCATE ${emptied.join(', ')}`)
        await client.query('DELETE FROM setting WHERE name <> $1', [STORE_MOVE])
      }),

    write: (table, batch, state, next) =>
      transaction(async () => {
        if (state.after === null && table.clear !== null) await client.query(table.clear)
        const columns = table.columns.map(({ name }) => name).join(', ')
        await copyIn(client, `COPY ${table.name} (${columns}) FROM STDIN`, batch.chunks())
        await replaceState(state, next())
      }),

    advance: (state, next) => transaction(() => replaceState(state, next)),

    async makeMonths(instants) {
      for (const atMs of instants) await reads.query('SELECT make_call_months($1, 1)', [atMs])
    },

    async analyse() {
      await reads.query(`ANALYZE ${MOVED_TABLES.map(({ name }) => name).join(', ')}`)
    },

    async totals(table) {
      const sums = summed(table).map(
        ({ name, kind }) => `coalesce(sum(${kind === 'flag' ? `${name}::int` : name}), 0)::text AS ${name}`,
      )
      const [row = {}] = await reads.query(
        `SELECT ${['count(*)::text AS rows', ...sums].join(', ')} FROM ${table.name}
         WHERE ${table.name === 'setting' ? `name <> '${STORE_MOVE}'` : 'true'}`,
      )
      return Object.fromEntries(Object.entries(row).map(([name, sum]) => [name, BigInt(String(sum))]))
    },

    async close() {
      await Promise.all([client.end().catch(() => {}), reads.close()])
    },
  }
}

/** What a new database has by itself, or a command has left that was tried on it, is not strange. */
const STRANGE: Readonly<Record<string, string>> = {
  account:
    "id <> 'default' OR credited_nanos <> 0 OR charged_nanos <> 0 OR held_nanos <> 0 OR credit_enforced",
  setting: "name <> 'pepper' OR value <> $1",
}

function anotherMove(): MovedByAnother {
  return new MovedByAnother('Another `tollgate migrate-store` moves books into this database at this moment.')
}
