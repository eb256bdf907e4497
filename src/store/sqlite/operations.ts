import type { AdminKeyRecord, KeyRecord, NewAdminKey, NewKey } from '../../keys/key-store.ts'
import type { Recognition } from '../../keys/recognition.ts'
import type { Admission, CallClosing, CallOpening, CallRecord, Settled } from '../../ledger/call.ts'
import type { Balance, NewCredit } from '../../ledger/ledger-store.ts'

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

  admit(opening: CallOpening): Admission
  settle(closing: CallClosing): Settled
  getCall(requestId: string): CallRecord | null
  interruptOpenCalls(atMs: number): number
  getBalance(accountId: string): Balance
  addCredit(credit: NewCredit): Balance
  keepPriceVersion(id: string, json: string): null

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
  | {
      readonly ok: false
      readonly error: string
      /** The disk is not to be trusted any more: what was reported as written may not be there. */
      readonly fatal: boolean
      /** The same command may succeed later: the disk was full, or somebody else was writing. */
      readonly passing: boolean
    }

/** What the worker is started with. */
export interface WorkerParts {
  readonly file: string
  /** One 32-bit integer: while it is not 0, commits fail with it as SQLite's error code. For tests. */
  readonly diskFault: SharedArrayBuffer | null
}
