import type { AdminKeyRecord, KeyRecord, NewAdminKey, NewKey } from '../../keys/key-store.ts'
import type { Admission, Recognition } from '../../ledger/admission.ts'

/**
 * What the worker thread can be asked to do. The types on both sides of the thread boundary come from this map,
 * so that a caller cannot send what the worker does not understand.
 */
export type Operations = {
  createKey(key: NewKey): KeyRecord
  getKey(id: string): KeyRecord | null
  revokeKey(id: string, atMs: number): KeyRecord | null
  createAdminKey(key: NewAdminKey): AdminKeyRecord
  listAdminKeys(): readonly AdminKeyRecord[]
  revokeAdminKey(id: string, atMs: number): AdminKeyRecord | null
  recognise(digest: Uint8Array, atMs: number): Recognition
  admit(digest: Uint8Array, atMs: number): Admission
  readSetting(name: string): string | null
  writeSetting(name: string, value: string): null
}

export type OperationName = keyof Operations
export type Command = {
  [Name in OperationName]: readonly [Name, ...Parameters<Operations[Name]>]
}[OperationName]

/** A result per command of the batch, in order. A failure is text: errors do not cross threads well. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: string }
