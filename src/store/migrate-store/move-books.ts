import { BATCH_ROWS_MAX, Batch } from './batch.ts'
import { describeMoved, type MovedTo, type MoveState, shownInstant } from './move-state.ts'
import { MOVED_TABLES, type MovedTable } from './moved-tables.ts'
import type { Source } from './source.ts'
import type { Target } from './target.ts'

/** Where the books cannot be moved; the message says why, and what to do. */
export class MoveRefused extends Error {
  override readonly name = 'MoveRefused'
}

export interface MoveWatch {
  /** Rows of a table that are there, of so many. */
  onRows(table: MovedTable, done: number, total: number): void
}

/** How a run of the command begins. */
export type Beginning = 'new' | 'going_on' | 'again' | 'finished_before'

export interface Begun {
  readonly beginning: Beginning
  readonly state: MoveState
}

/** Finds out how far an earlier run came, and refuses a database that has other books in it. */
export async function beginMove(
  source: Source,
  target: Target,
  nowMs: number,
  /** What was noted in the source by a move that has finished, or had only to say so. */
  seal: MovedTo | null,
): Promise<Begun> {
  const { installation, books } = source
  const first: MoveState = {
    ...{ installation, books, startedAtMs: nowMs, finishedAtMs: null },
    ...{ table: MOVED_TABLES[0]?.name ?? null, after: null, rows: 0 },
  }
  const state = await target.readState()
  if (state === null) {
    if (seal !== null) throw new MoveRefused(describeMoved(seal))
    const occupied = await target.occupied(installation)
    if (occupied.length > 0) {
      throw new MoveRefused(
        `The database has books of its own already (${occupied.join(', ')}). Books are moved into an empty ` +
          'database only: make one, and name it in TOLLGATE_DATABASE_URL.',
      )
    }
    await target.begin(first)
    return { beginning: 'new', state: first }
  }
  if (state.installation !== installation) {
    throw new MoveRefused(
      'The books of another installation were moved into this database, or are being moved. Name an empty one in ' +
        'TOLLGATE_DATABASE_URL.',
    )
  }
  if (state.finishedAtMs !== null) {
    if (state.books === books) return { beginning: 'finished_before', state }
    throw new MoveRefused(
      `The books were moved into this database on ${shownInstant(state.finishedAtMs)}, and those of the data ` +
        'directory have changed since. Two sets of books cannot be made one: go on with the one or the other.',
    )
  }
  if (state.books === books) return { beginning: 'going_on', state }
  await target.beginAgain(state, first)
  return { beginning: 'again', state: first }
}

/**
 * Brings what is not there yet, table by table, in batches: each is one transaction together with the word of how far
 * the move is, so that a run that ends anywhere loses nothing but its last batch and brings nothing twice.
 */
export async function moveRows(
  source: Source,
  target: Target,
  begun: MoveState,
  watch: MoveWatch,
  rowsMax: number = BATCH_ROWS_MAX,
): Promise<MoveState> {
  let state = begun
  // Nothing before the table of calls needs them, and a run that goes on inside it has them already or makes them now.
  await target.makeMonths(source.callMonths())
  for (const [i, table] of MOVED_TABLES.entries()) {
    if (table.name !== state.table) continue
    const following = MOVED_TABLES[i + 1]?.name ?? null
    const rows = source.read(table, state.after)
    const total = source.rowsOf(table)
    const before = MOVED_TABLES.slice(0, i).reduce((sum, each) => sum + source.rowsOf(each), 0)
    watch.onRows(table, state.rows - before, total)
    while (state.table === table.name) {
      const batch = new Batch(table, rows, rowsMax)
      const next = (): MoveState => ({
        ...state,
        table: batch.atEnd ? following : table.name,
        after: batch.atEnd ? null : batch.last,
        rows: state.rows + batch.rows,
      })
      await target.write(table, batch, state, next)
      state = next()
      watch.onRows(table, state.rows - before, total)
    }
  }
  return state
}
