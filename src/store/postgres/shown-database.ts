import type { Secret } from '../../kernel/secret.ts'

/** Where the database is, without the password or anything else that came with the URL. */
export function shownDatabase(databaseUrl: Secret): string {
  const { hostname: host, port, pathname } = new URL(databaseUrl.reveal())
  return `postgres://${host}:${port || '5432'}${pathname}`
}
