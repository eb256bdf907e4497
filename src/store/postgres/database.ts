import type { Row } from './rows.ts'

/**
 * What the parts of the store ask of PostgreSQL. `int8` comes as bigint, `bytea` as Buffer, `jsonb` parsed, `int4` as
 * number, `bool` as boolean. Failures are StoreUnavailable where the same may succeed later, else StoreRefused.
 *
 * Nothing here is kept on a connection between two statements outside a transaction: behind a pooler in transaction
 * mode the next statement may run on another one.
 */
export interface Database {
  /** One statement, or, in the work of a transaction, one of its statements. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * Does the work between BEGIN and COMMIT, at READ COMMITTED: each statement sees what was committed before it began,
   * so what a decision depends on is locked in one statement and read in it or a later one. If the database ended it
   * in favour of another (a deadlock, a serialization failure) the whole work is done again, once. Inside the work of
   * a transaction it is part of that one. The database ends it where it hears nothing for so long between two
   * statements.
   */
  transaction<T>(work: (tx: Database) => Promise<T>, idleMsMax?: number): Promise<T>
}
