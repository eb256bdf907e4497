import type { Secret } from '../../kernel/secret.ts'

/**
 * Where the database is, without the password or anything else that came with the URL. Not in database.ts: that loads
 * pg, which a start with SQLite need not wait for.
 */
export function shownDatabase(databaseUrl: Secret): string {
  const { hostname: host, port, pathname } = new URL(databaseUrl.reveal())
  return `postgres://${host}:${port || '5432'}${pathname}`
}
