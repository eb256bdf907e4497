import { dirname, join } from 'node:path'

/** Bodies have a separate file beside the database: a megabyte per call would slow down its log. */
export function bodiesFileOf(databaseFile: string): string {
  return join(dirname(databaseFile), 'bodies.db')
}
