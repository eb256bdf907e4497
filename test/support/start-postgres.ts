import { type PostgresServer, startPostgres } from './postgres.ts'

/** For `node --test --test-global-setup`: one server for all test files, which find it in TEST_POSTGRES_URL. */

let server: PostgresServer | null = null

export async function globalSetup(): Promise<void> {
  if (process.env['TEST_POSTGRES_URL'] !== undefined) return
  server = await startPostgres()
  process.env['TEST_POSTGRES_URL'] = server.url
}

export async function globalTeardown(): Promise<void> {
  await server?.stop()
}
