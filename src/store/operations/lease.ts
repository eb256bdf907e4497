import { limits } from '../../kernel/limits.ts'
import type { Operation } from './operation.ts'
import { FOR_UPDATE, now, raw, sql } from './sql.ts'

/**
 * Leases, for webhooks and all other work that one node does at a time and another takes over when it falls silent. Work is
 * recorded in the transaction that has seen its lease in force, and on PostgreSQL locked: a node that was paused for too long
 * finds its lease lost.
 */

/** The lease of the relay and the sweep. The lease of an endpoint has the endpoint's id. */
export const RELAY = 'relay'

const LEASE_MS = raw(`${limits.webhookLeaseMs}`)

/** Takes a lease that is free or run out, or keeps the lease that the holder has. */
export function* takeLease(name: string, holder: string, atMs: number): Operation<boolean> {
  const taken = yield sql`
    INSERT INTO webhook_lease (name, holder, until_ms) VALUES (${name}, ${holder}, ${now(atMs)} + ${LEASE_MS})
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
    WHERE webhook_lease.holder = excluded.holder OR webhook_lease.until_ms <= ${now(atMs)} RETURNING name`
  return taken.length > 0
}

export function* hasLease(name: string, holder: string, atMs: number): Operation<boolean> {
  const held = yield sql`
    SELECT name FROM webhook_lease WHERE name = ${name} AND holder = ${holder} AND until_ms > ${now(atMs)}
    ${FOR_UPDATE}`
  return held.length > 0
}

export function* keepWebhookLease(holder: string, webhookId: string, atMs: number): Operation<boolean> {
  return yield* takeLease(webhookId, holder, atMs)
}

export function* releaseLease(name: string, holder: string): Operation<void> {
  yield sql`DELETE FROM webhook_lease WHERE name = ${name} AND holder = ${holder}`
}

export function* releaseLeases(holder: string): Operation<void> {
  yield sql`DELETE FROM webhook_lease WHERE holder = ${holder}`
}
