import { MOVED_TO, STORE_MOVE } from './moved-tables.ts'

/** The progress of a move. Kept in PostgreSQL, from before the first row is there. */
export interface MoveState {
  /** Which installation is moved. */
  readonly installation: string
  readonly startedAtMs: number
  readonly finishedAtMs: number | null
}

/** The seal that is left in SQLite: it says where the books are now. */
export interface MovedTo {
  /** The database's URL without a password. */
  readonly database: string
  readonly atMs: number
}

export function parseState(json: string): MoveState {
  return JSON.parse(json) as MoveState
}

export function parseMovedTo(json: string): MovedTo {
  return JSON.parse(json) as MovedTo
}

/**
 * Why the books of a store must not be used: half of them are elsewhere, or all of them. Null: they may be used. Asked
 * before anything is written.
 */
export async function whyNotOpened(store: {
  readSetting(name: string): Promise<string | null>
}): Promise<string | null> {
  const move = await store.readSetting(STORE_MOVE)
  if (move !== null && parseState(move).finishedAtMs === null) {
    return (
      `The books are still being moved into this database: \`tollgate migrate-store\` began on ` +
      `${shownInstant(parseState(move).startedAtMs)} and has not finished. Let it finish, or start it again where it ` +
      'was started.'
    )
  }
  const moved = await store.readSetting(MOVED_TO)
  return moved === null ? null : describeMoved(parseMovedTo(moved))
}

export function describeMoved({ database, atMs }: MovedTo): string {
  return (
    `The books of this data directory were moved to ${database} on ${shownInstant(atMs)}; to serve from them, set ` +
    'TOLLGATE_DATABASE_URL. To go back to the books as they were then, without what was booked in PostgreSQL since: ' +
    'tollgate migrate-store --undo'
  )
}

export function shownInstant(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
