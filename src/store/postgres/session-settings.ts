import pg from 'pg'
import { unconnected } from './outcome.ts'

/** What connections may ask for when they begin. */
export interface SessionSettings {
  /** Whether the database itself ends statements and transactions that take too long. */
  readonly deadlines: boolean
}

/**
 * A pooler in transaction mode lends the same connection to many, and refuses settings that would stay on it. Behind
 * one the deadlines are ours alone, and the operator may set `statement_timeout` on the role.
 */
export async function probeSettings(url: string): Promise<SessionSettings> {
  try {
    await connectOnce(url, { statement_timeout: 60_000, idle_in_transaction_session_timeout: 60_000 })
    return { deadlines: true }
  } catch (error) {
    if (!isRefusedSetting(error)) throw unconnected(error)
  }
  await connectOnce(url, {}).catch((error: unknown) => {
    throw unconnected(error)
  })
  return { deadlines: false }
}

async function connectOnce(url: string, settings: pg.ClientConfig): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, ...settings })
  client.on('error', () => {})
  try {
    await client.connect()
  } finally {
    await client.end()
  }
}

function isRefusedSetting(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /unsupported startup parameter/i.test(error.message)
}
