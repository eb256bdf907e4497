import { type KeyRecord, keyStatus } from '../keys/key-store.ts'

/** A key as the API shows it. The secret is not part of it: only its creation tells it, once. */
export function keyObject(key: KeyRecord, nowMs: number): Record<string, unknown> {
  return {
    id: key.id,
    object: 'key',
    name: key.name,
    prefix: key.prefix,
    last4: key.last4,
    status: keyStatus(key, nowMs),
    expires_at: timestamp(key.expiresAtMs),
    created_at: timestamp(key.createdAtMs),
    revoked_at: timestamp(key.revokedAtMs),
    last_used_at: timestamp(key.lastUsedAtMs),
  }
}

function timestamp(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
