import { monthOf } from '../../ledger/calendar.ts'
import { type Database, sqlState } from './database.ts'

/** This month and the two after it are made ahead of time. */
const MONTHS_AHEAD = 3

/** What an insert into a month that is not there fails with; the constraint is the table's own, and has no name. */
const CHECK_VIOLATION = '23514'

/** Calls are kept by the month of their admission, and a month has to be made before it has its first call. */
export interface CallMonths {
  /** Makes the present month by the database's clock and those after it. */
  makeAhead(): Promise<void>
  /** Makes the month of this instant, for callers who bring their own time. */
  have(atMs: number): Promise<void>
  /** Does the work, and once more if the month was not there. */
  makingThem<T>(work: () => Promise<T>): Promise<T>
}

export function createCallMonths(db: Database): CallMonths {
  const made = new Set<string>()

  async function makeAhead(): Promise<void> {
    await db.query('SELECT make_call_months(NULL, $1)', [MONTHS_AHEAD])
  }

  return {
    makeAhead,

    async have(atMs) {
      const month = monthOf(atMs)
      if (made.has(month)) return
      await db.query('SELECT make_call_months($1, 1)', [Math.trunc(atMs)])
      made.add(month)
    },

    async makingThem(work) {
      try {
        return await work()
      } catch (error) {
        if (sqlState(error) !== CHECK_VIOLATION) throw error
        await makeAhead()
        return await work()
      }
    },
  }
}
