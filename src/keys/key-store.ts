/** What the service keeps about keys, and the port through which it is kept. Instants are milliseconds (UTC). */

export type KeyStatus = 'usable' | 'revoked' | 'expired'

export interface KeyRecord {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly revokedAtMs: number | null
  readonly lastUsedAtMs: number | null
}

export interface NewKey {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
}

export interface AdminKeyRecord {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** The one that came from the configuration; a changed value there replaces it. */
  readonly bootstrap: boolean
}

export interface NewAdminKey {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly digest: Uint8Array
  readonly prefix: string
  readonly last4: string
  readonly createdAtMs: number
  readonly bootstrap: boolean
}

export interface KeyStore {
  createKey(key: NewKey): Promise<KeyRecord>
  getKey(id: string): Promise<KeyRecord | null>
  /** The first revocation counts; repeating it changes nothing. Null if there is no such key. */
  revokeKey(id: string, atMs: number): Promise<KeyRecord | null>

  /** A bootstrap key takes the place of the former bootstrap key, which stops working; the same value is kept. */
  createAdminKey(key: NewAdminKey): Promise<AdminKeyRecord>
  listAdminKeys(): Promise<readonly AdminKeyRecord[]>
  revokeAdminKey(id: string, atMs: number): Promise<AdminKeyRecord | null>
}

export function keyStatus(key: Pick<KeyRecord, 'revokedAtMs' | 'expiresAtMs'>, nowMs: number): KeyStatus {
  if (key.revokedAtMs !== null) return 'revoked'
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'expired'
  return 'usable'
}
