import type { KeyRecord } from './key-store.ts'

/**
 * Devices: terminals and coding agents in which a person has signed in (RFC 8628). A device begins as a code that the
 * person approves, and then is a key of the person, which it refreshes itself.
 */

export type DeviceCodeStatus = 'pending' | 'approved' | 'denied'

export interface NewDeviceCode {
  /** Of the code that the device has. */
  readonly digest: Uint8Array
  /** The code that the person compares, without its hyphen. */
  readonly userCode: string
  /** What the device calls itself. */
  readonly client: string
  readonly lifeMs: number
  readonly atMs: number
}

export interface DeviceDecision {
  readonly userCode: string
  readonly personId: string
  readonly status: Exclude<DeviceCodeStatus, 'pending'>
  readonly atMs: number
}

/** How long the key of a device is usable after a refresh, and how long it can be refreshed. */
export interface DeviceLife {
  readonly usableMs: number
  readonly refreshableMs: number
  readonly atMs: number
}

export type NewDevice = DeviceLife &
  Pick<KeyRecord, 'id' | 'prefix' | 'last4'> & { readonly digest: Uint8Array }

export type Redemption =
  /** `expired`: the code is unknown, was used, or is too old. */
  | { readonly kind: 'pending' | 'too_fast' | 'expired' | 'denied' }
  | { readonly kind: 'signed_in'; readonly email: string }

/** The key of a device that is not revoked and can be refreshed. */
export interface Device extends Pick<KeyRecord, 'id' | 'accountId'> {
  readonly personId: string
  readonly expiresAtMs: number | null
  /** False: it must be refreshed first. */
  readonly isUsable: boolean
}
