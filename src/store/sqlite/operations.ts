import type { Once, OnceResult } from '../../kernel/once.ts'
import type { Recognition } from '../../keys/identity.ts'
import type {
  AdminKeyRecord,
  KeyChanges,
  KeyCreation,
  KeyEdit,
  KeyRecord,
  KeySuccessor,
  NewAdminKey,
  NewKey,
  Rotation,
} from '../../keys/key-store.ts'
import type { Admission, CallClosing, CallOpening, CallRecord, Settled } from '../../ledger/call.ts'
import type {
  Balance,
  BatchFile,
  CreditBack,
  Credited,
  CreditedBack,
  NewCredit,
} from '../../ledger/ledger-store.ts'
import type { RefusedCall } from '../../ledger/request-log.ts'

/**
 * What the worker thread can be asked to do. The types on both sides of the thread boundary come from this map,
 * so that a caller cannot send what the worker does not understand. What looks at many rows is not here but in
 * `read-operations.ts`: on this thread every admission would wait for it.
 */
export type Operations = {
  createKey(key: NewKey, once: Once | null): KeyCreation
  getKey(accountId: string, id: string, atMs: number): KeyRecord | null
  updateKey(accountId: string, id: string, changes: KeyChanges, atMs: number): KeyEdit
  revokeKey(accountId: string, id: string, atMs: number): KeyRecord | null
  rotateKey(accountId: string, id: string, successor: KeySuccessor, once: Once | null): Rotation
  createAdminKey(key: NewAdminKey): AdminKeyRecord
  listAdminKeys(): readonly AdminKeyRecord[]
  revokeAdminKey(id: string, atMs: number): AdminKeyRecord | null
  recognise(digest: Uint8Array, atMs: number): Recognition

  admit(opening: CallOpening): Admission
  settle(closing: CallClosing): Settled
  getCall(requestId: string): CallRecord | null
  interruptOpenCalls(atMs: number): number
  getBalance(accountId: string): Balance
  addCredit(credit: NewCredit, once: Once | null): OnceResult<Credited>
  creditBack(command: CreditBack, once: Once | null): OnceResult<CreditedBack>
  keepBatchFile(file: BatchFile): null
  keepPriceVersion(id: string, json: string): null
  keepRefused(calls: readonly RefusedCall[]): null
  deleteRefused(beforeMs: number, callsMax: number, limit: number): number

  readSetting(name: string): string | null
  keepSetting(name: string, value: string): string
  probeWrite(): null
}

export type OperationName = keyof Operations
export type Command = {
  [Name in OperationName]: readonly [Name, ...Parameters<Operations[Name]>]
}[OperationName]

/** What the worker is started with. */
export interface WorkerParts {
  readonly file: string
  /** One 32-bit integer: it is counted up, and whoever waits at it woken, when there is a message at the port. */
  readonly bell: SharedArrayBuffer
  /** One 32-bit integer: while it is not 0, commits fail with it as SQLite's error code. For tests. */
  readonly diskFault: SharedArrayBuffer | null
}
