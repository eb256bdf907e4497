import { createHash } from 'node:crypto'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { IdempotentResult } from '../../../src/kernel/idempotency.ts'
import { firstUlid } from '../../../src/kernel/ids.ts'
import { type NewKey, NO_LIMITS } from '../../../src/keys/key-store.ts'
import type { CreditBack } from '../../../src/ledger/account.ts'
import type { CallClosing, CallOpening } from '../../../src/ledger/call.ts'
import type { CallFilter } from '../../../src/ledger/request-log.ts'
import type { Store } from '../../../src/store/store.ts'

export interface StoreUnderTest {
  readonly store: Store
  /** All rows of a table, read outside the store. Integers are bigint. */
  rows(table: string): Rows | Promise<Rows>
  /** Inserts an account directly. Every row names its account. */
  addAccount(id: string): void | Promise<void>
  exec(sql: string): unknown
  /** Deletes all rows except those of a new store. */
  empty(): Promise<void>
  close(): Promise<void>
}

export type Rows = readonly Record<string, unknown>[]

export type OpenStoreUnderTest = () => Promise<StoreUnderTest>

export const NOON = Date.UTC(2026, 10, 15, 12)

/** A filter that every call of the default account matches. */
export const ALL_CALLS: CallFilter = {
  accountId: 'default',
  keyId: null,
  fromMs: null,
  toMs: null,
  model: null,
  status: null,
  state: null,
  minCostNanos: null,
  flag: null,
}

/** A scope of all admin keys. */
export const EVERY_ADMIN = { accountId: null, operators: true } as const

export const digestOf = (name: string): Uint8Array => createHash('sha256').update(name).digest()

export function newKey(name: string, more: Partial<NewKey> = {}): NewKey {
  return {
    id: `key_${name}`,
    accountId: 'default',
    name,
    digest: digestOf(name),
    prefix: 'svc_live_xxxxxxx',
    last4: 'xxxx',
    createdAtMs: NOON - 1_000,
    ...NO_LIMITS,
    ...more,
  }
}

export async function addKey(store: Store, name: string, more: Partial<NewKey> = {}): Promise<string> {
  return doneValue(await store.createKey(newKey(name, more), null, SYSTEM)).id
}

/** The value of a command that must be done, not repeated. */
export function doneValue<T>(
  result: IdempotentResult<T> | { readonly kind: 'already_expired' | 'nothing' | 'too_much' },
): T {
  if (result.kind !== 'done') throw new Error(`done was expected, not ${result.kind}`)
  return result.value
}

let credits = 0

export function creditBackOf(requestIds: readonly string[], id = `crd_back_${credits++}`): CreditBack {
  return { id, accountId: 'default', requestIds, reason: 'stolen', actor: SYSTEM, atMs: NOON }
}

/** Adds credit and enforces it. */
export async function addCredit(store: Store, amountNanos: bigint): Promise<void> {
  credits += 1
  const id = `crd_${credits}`
  const credit = { id, accountId: 'default', amountNanos, reason: 'top-up', actor: SYSTEM, atMs: NOON }
  await store.addCredit(credit, null)
  await store.updateAccount('default', { creditEnforced: true }, SYSTEM, NOON)
}

export function opening(requestId: string, keyName: string, more: Partial<CallOpening> = {}): CallOpening {
  return {
    requestId,
    digest: digestOf(keyName),
    atMs: NOON,
    method: 'POST',
    path: '/v1/messages',
    surface: 'messages',
    modelAsked: 'claude-haiku-5-5',
    clientIp: '127.0.0.1',
    userAgent: null,
    sessionId: null,
    socketId: null,
    hold: { kind: 'bound', nanos: 1_000n, listNanos: 1_250n },
    models: { names: [], unknown: null, batchFile: null },
    ambiguity: null,
    priceVersion: 'test',
    rating: '{}',
    unratable: null,
    countsHolds: true,
    unboundedNanos: 25_000_000_000n,
    hasWaited: false,
    isRequest: true,
    isCheckOnly: false,
    isStanding: false,
    objectId: null,
    hasBegun: false,
    ...more,
  }
}

export function closing(requestId: string, more: Partial<CallClosing> = {}): CallClosing {
  return {
    requestId,
    state: 'settled',
    atMs: NOON + 500,
    status: 200,
    modelServed: 'claude-haiku-5-5',
    stopReason: 'end_turn',
    streamed: false,
    estimated: false,
    unpriced: false,
    pricedAsRequested: false,
    usage: '{"parts":[]}',
    tokens: { input: 10, output: 5, cacheRead: 3, cacheWrite: 2 },
    costNanos: 800n,
    listNanos: 1_000n,
    upstreamMs: 450,
    overheadMs: 3,
    upstreamRequestId: 'req_up',
    bytesIn: 100,
    bytesOut: 200,
    ...more,
  }
}

export const holding = (nanos: bigint): Partial<CallOpening> => ({
  hold: { kind: 'bound', nanos, listNanos: nanos },
})

export const costing = (costNanos: bigint) => ({ costNanos, listNanos: costNanos })

export const capped = (store: Store, name: string, monthlyBudgetNanos: bigint | null) =>
  addKey(store, name, { monthlyBudgetNanos })

/** Asks for admission; returns the answer in short form. */
export async function ask(store: Store, ...args: Parameters<typeof opening>): Promise<string> {
  const admission = await store.admit(opening(...args))
  if (admission.kind === 'refused') return admission.refusal.reason
  return admission.kind === 'blocked' ? `held by ${admission.by.limit}` : 'admitted'
}

/** The id of a call at this time. Within a millisecond, ids are in the order of their names. */
export function idAt(atMs: number, name: string): string {
  return `req_${firstUlid(atMs).slice(0, 10)}${name.padStart(16, '0')}`
}
