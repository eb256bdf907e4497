import pg from 'pg'
import { failureOf, unconnected } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import { copyRows } from './copy-rows.ts'
import { describeMoved, type MovedTo, type MoveState, parseState, shownInstant } from './move-state.ts'
import { MOVED_TABLES, type MovedTable, STORE_MOVE } from './moved-tables.ts'
import { type Source, summed, type Totals } from './source.ts'

/** Thrown where the books cannot be moved; the message says why, and what to do. */
export class MoveRefused extends Error {
  override readonly name = 'MoveRefused'
}

/** The database that the books are moved into. */
export interface Target {
  query(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** All or nothing. */
  transaction(work: (client: pg.Client) => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** The timeouts that the role or the database sets for nodes are lifted: reading all rows may take long. */
const BEGIN = `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
  SET LOCAL idle_in_transaction_session_timeout = 0`

/** Brings the database's schema to this version; a database of a newer version is refused. */
export async function openTarget(url: string): Promise<Target> {
  await migrate(url)
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tollgate migrate-store',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    throw unconnected(error)
  })

  async function transaction(work: (client: pg.Client) => Promise<void>): Promise<void> {
    try {
      await client.query(BEGIN)
      await work(client)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      throw error instanceof MoveRefused ? error : failureOf(error)
    }
  }

  return {
    transaction,
    async query(sql, values = []) {
      let rows: readonly Record<string, unknown>[] = []
      await transaction(async () => {
        rows = (await client.query(sql, [...values])).rows
      })
      return rows
    },
    close: () => client.end().catch(() => {}),
  }
}

/** The work that is left: the whole move, or only the check and `finishMove`, or nothing. */
export type Beginning = 'new' | 'copied' | 'finished_before'

export interface Begun {
  readonly beginning: Beginning
  readonly state: MoveState
}

/**
 * Finds out how far an earlier run came, refuses a database that has other books in it, and notes that a move has begun:
 * from then on no node serves from the database.
 */
export async function beginMove(
  source: Source,
  target: Target,
  nowMs: number,
  /** The seal in the source, of a move that has finished or had only to be marked as finished. */
  seal: MovedTo | null,
): Promise<Begun> {
  const { installation } = source
  const state = await readState(target)
  if (state === null) {
    if (seal !== null) throw new MoveRefused(describeMoved(seal))
    await refuseOccupied(target, installation)
    const first: MoveState = { installation, startedAtMs: nowMs, finishedAtMs: null }
    await writeState(target, first)
    return { beginning: 'new', state: first }
  }
  if (state.installation !== installation) {
    throw new MoveRefused(
      'The books of another installation were moved into this database, or are being moved. Name an empty one in ' +
        'TOLLGATE_DATABASE_URL.',
    )
  }
  if (state.finishedAtMs === null) return { beginning: seal === null ? 'new' : 'copied', state }
  if (seal !== null) return { beginning: 'finished_before', state }
  throw new MoveRefused(
    `The books were moved into this database on ${shownInstant(state.finishedAtMs)}, and those of the data ` +
      'directory were taken into use again since. Two sets of books cannot be made one: go on with the one or the other.',
  )
}

async function readState({ query }: Target): Promise<MoveState | null> {
  const [row] = await query('SELECT value FROM setting WHERE name = $1', [STORE_MOVE])
  return row === undefined ? null : parseState(String(row['value']))
}

async function writeState({ query }: Target, state: MoveState): Promise<void> {
  await query(
    'INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [STORE_MOVE, JSON.stringify(state)],
  )
}

/** Conditions for rows of other books. Rows that a new database has by itself, or that a command has left, are not strange. */
const STRANGE: Readonly<Record<string, string>> = {
  account:
    "id <> 'default' OR credited_nanos <> 0 OR charged_nanos <> 0 OR held_nanos <> 0 OR credit_enforced",
  setting: "name <> 'pepper' OR value <> $1",
}

async function refuseOccupied({ query }: Target, installation: string): Promise<void> {
  const looks = MOVED_TABLES.map(
    ({ name }) => `EXISTS (SELECT FROM ${name} WHERE ${STRANGE[name] ?? 'true'}) AS ${name}`,
  )
  const [row] = await query(`SELECT ${looks.join(', ')} WHERE $1::text IS NOT NULL`, [installation])
  const occupied = MOVED_TABLES.filter(({ name }) => row?.[name] === true).map(({ noun }) => noun)
  if (occupied.length === 0) return
  throw new MoveRefused(
    `The database has books of its own already (${occupied.join(', ')}). Books are moved into an empty ` +
      'database only: make one, and name it in TOLLGATE_DATABASE_URL.',
  )
}

/**
 * Copies all rows, in one transaction: a run that breaks off leaves nothing, and another one starts anew. Rows that an
 * earlier run has copied without finishing the move are deleted.
 */
export async function moveRows(
  source: Source,
  target: Target,
  onRows: (table: MovedTable, done: number, total: number) => void,
): Promise<void> {
  await target.transaction(async (client) => {
    // Of two runs at once the second waits here, and then copies all rows again.
    await client.query('LOCK TABLE setting IN SHARE ROW EXCLUSIVE MODE')
    const emptied = MOVED_TABLES.map(({ name }) => name).filter((name) => name !== 'setting')
    await client.query(`TRUNCATE ${emptied.join(', ')}`)
    await client.query('DELETE FROM setting WHERE name <> $1', [STORE_MOVE])
    for (const atMs of source.callMonths()) await client.query('SELECT make_call_months($1, 1)', [atMs])
    for (const table of MOVED_TABLES) {
      const total = source.rowsOf(table)
      onRows(table, 0, total)
      await copyRows(client, table, source.read(table), (sent) => onRows(table, sent, total))
      onRows(table, total, total)
    }
    // ANALYZE runs in the same transaction: a second run that waits for this one takes locks in another order.
    await client.query(`ANALYZE ${MOVED_TABLES.map(({ name }) => name).join(', ')}`)
  })
}

/** Compares rows and sums on both sides. Null: they are the same, and nothing is held but by deferred calls. */
export async function compareBooks(
  source: Source,
  target: Target,
  onTable: (table: MovedTable, done: number, total: number) => void,
): Promise<string | null> {
  const [open] = await target.query(
    "SELECT coalesce(sum(hold_nanos), 0)::text AS nanos FROM call WHERE state = 'in_flight'",
  )
  const openNanos = BigInt(String(open?.['nanos']))
  for (const [i, table] of MOVED_TABLES.entries()) {
    onTable(table, i, MOVED_TABLES.length)
    const from = source.totals(table)
    const to = await totalsOf(target, table)
    for (const [column, sum] of Object.entries(from)) {
      if (to[column] === sum) continue
      const what = column === 'rows' ? 'the number of' : `the sum of ${column} of`
      return `${what} ${table.noun} is ${sum} in SQLite and ${to[column]} in PostgreSQL`
    }
    const held = to['held_nanos'] ?? openNanos
    if (held !== openNanos) return `${table.noun} have ${held} nanodollars held, and open calls ${openNanos}`
  }
  return null
}

async function totalsOf({ query }: Target, table: MovedTable): Promise<Totals> {
  const sums = summed(table).map(
    ({ name, kind }) => `coalesce(sum(${kind === 'flag' ? `${name}::int` : name}), 0)::text AS ${name}`,
  )
  const [row = {}] = await query(
    `SELECT ${['count(*)::text AS rows', ...sums].join(', ')} FROM ${table.name}
     WHERE ${table.name === 'setting' ? `name <> '${STORE_MOVE}'` : 'true'}`,
  )
  return Object.fromEntries(Object.entries(row).map(([name, sum]) => [name, BigInt(String(sum))]))
}

/** From now on nodes may serve from the database. */
export async function finishMove(target: Target, begun: MoveState, atMs: number): Promise<void> {
  await writeState(target, { ...begun, finishedAtMs: atMs })
}
