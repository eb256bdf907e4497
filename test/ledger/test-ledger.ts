import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SYSTEM } from '../../src/kernel/actor.ts'
import type { CallClosing, CallOpening } from '../../src/ledger/call.ts'
import {
  type ChangedCall,
  type CurrentPrices,
  type RateAgain,
  type RerateCandidate,
  rerateCall,
} from '../../src/ledger/rerate.ts'
import { type AuditReport, audit as auditSnapshot } from '../../src/store/operations/audit.ts'
import type { Snapshot } from '../../src/store/operations/operation.ts'
import { openSqliteSnapshot } from '../../src/store/sqlite/database.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { addKey, closing, NOON, opening, type Rows } from '../store/conformance/fixtures.ts'

/** A price version of these tests: nanodollars per unit, by model. */
export const versionJson = (rates: Readonly<Record<string, number>>): string => JSON.stringify({ rates })

export const V1 = versionJson({ 'claude-haiku-5-5': 100, 'gpt-6-luna': 40 })

/** Units times rate, minus the percentage: the simplest rating that depends on all inputs of the real one. */
export const rateAgain: RateAgain = ({ usage, rating, priceVersionJson }) => {
  const { model, units } = JSON.parse(usage) as { model: string; units: number }
  const { off } = JSON.parse(rating) as { off: number }
  const rate = (JSON.parse(priceVersionJson) as { rates: Record<string, number> }).rates[model]
  if (rate === undefined) return null
  const listNanos = BigInt(units * rate)
  return { listNanos, costNanos: (listNanos * BigInt(100 - off)) / 100n }
}

export interface TestLedger extends AsyncDisposable {
  openStore(): Promise<Store>
  openReader(): Promise<Snapshot>
  /** Changes rows without foreign keys, as a fault or an intruder would. */
  tamper(sql: string): Promise<void>
  rows(sql: string): Promise<Rows>
  /** The audit's report after a change that bypasses all constraints. The ledger is restored. */
  auditAfter(sql: string): Promise<AuditReport>
  remove(): Promise<void>
}

export async function audit(ledger: TestLedger, rate: RateAgain = rateAgain): Promise<AuditReport> {
  const reader = await ledger.openReader()
  try {
    return await auditSnapshot(reader.query, rate)
  } finally {
    await reader.close()
  }
}

export class DataDir implements TestLedger {
  readonly path = mkdtempSync(join(tmpdir(), 'tollgate-ledger-'))
  readonly file = join(this.path, 'tollgate.db')

  openStore(): Promise<Store> {
    return openSqliteStore(this.file, (error) => {
      throw error
    })
  }

  async openReader(): Promise<Snapshot> {
    return present(await openSqliteSnapshot(this.file))
  }

  async tamper(sql: string): Promise<void> {
    const db = new DatabaseSync(this.file, { enableForeignKeyConstraints: false })
    db.exec('PRAGMA ignore_check_constraints = 1')
    db.exec(sql)
    db.close()
  }

  async rows(sql: string): Promise<Rows> {
    const db = new DatabaseSync(this.file, { readOnly: true, readBigInts: true })
    const rows = db.prepare(sql).all()
    db.close()
    return rows
  }

  async auditAfter(sql: string): Promise<AuditReport> {
    await using copy = new DataDir()
    for (const part of ['', '-wal'])
      if (existsSync(this.file + part)) copyFileSync(this.file + part, copy.file + part)
    await copy.tamper(sql)
    return await audit(copy)
  }

  async remove(): Promise<void> {
    rmSync(this.path, { recursive: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove()
  }
}

export function present<T>(ledger: T | null): T {
  if (ledger === null) throw new Error('there is no database')
  return ledger
}

export const RATING = '{"off":20}'

export function rated(requestId: string, keyName: string, more: Partial<CallOpening> = {}): CallOpening {
  return opening(requestId, keyName, { priceVersion: 'v1', rating: RATING, ...more })
}

/** A closing whose figures are those of its usage at the prices of V1. */
export function billed(
  requestId: string,
  units: number,
  more: Partial<CallClosing> & { readonly model?: string } = {},
): CallClosing {
  const { model = 'claude-haiku-5-5', ...others } = more
  const usage = JSON.stringify({ model, units })
  const price = rateAgain({ usage, rating: RATING, priceVersionJson: V1 })
  return closing(requestId, {
    modelServed: model,
    usage,
    unpriced: price === null,
    costNanos: price?.costNanos ?? 0n,
    listNanos: price?.listNanos ?? 0n,
    ...others,
  })
}

/** Closes the store even if `work` fails: its thread or connections would keep the process alive. */
export async function withStore(ledger: TestLedger, work: (store: Store) => Promise<void>): Promise<void> {
  const store = await ledger.openStore()
  try {
    await work(store)
  } finally {
    await store.close()
  }
}

export interface RerateWriter {
  readonly store: Store
  read(afterId?: string): Promise<readonly RerateCandidate[]>
  changes(prices: CurrentPrices): Promise<ChangedCall[]>
  book(changed: readonly ChangedCall[]): ReturnType<Store['applyRerates']>
}

export async function withRerates(
  create: () => Promise<TestLedger>,
  work: (ledger: TestLedger, writer: RerateWriter) => Promise<void>,
): Promise<void> {
  const ledger = await create()
  try {
    await withStore(ledger, async (store) => {
      await fillStore(store)
      const read = (afterId = '') => store.readSettledCalls(afterId)
      const changes = async (prices: CurrentPrices): Promise<ChangedCall[]> => {
        const { id, json } = prices.versionFor({ startedAtMs: NOON, model: '', modelAsked: null })
        await store.storePriceVersion(id, json)
        return (await read())
          .map((call) => rerateCall(call, prices))
          .filter((each) => typeof each !== 'string')
      }
      await work(ledger, { store, read, changes, book: (changed) => store.applyRerates(changed, NOON) })
    })
  } finally {
    await ledger.remove()
  }
}

/** Keys a and b, a top-up of 1 USD, and ten calls of every kind and end, one still in flight. */
export async function fillStore(store: Store): Promise<void> {
  await addKey(store, 'a')
  await addKey(store, 'b')
  await store.storePriceVersion('v1', V1)
  const topUp = {
    id: 'crd_1',
    accountId: 'default',
    amountNanos: 1_000_000_000n,
    reason: 'x',
    actor: SYSTEM,
    atMs: NOON,
  }
  await store.addCredit(topUp, null)
  await store.updateAccount('default', { creditEnforced: true }, SYSTEM, NOON)
  const admit = (id: string, key: string, more: Partial<CallOpening> = {}) =>
    store.admit(rated(id, key, more))
  const october = { atMs: Date.UTC(2026, 9, 31, 23, 59, 59, 999) }
  const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }

  await admit('req_08', 'a', october)
  await store.settle(billed('req_08', 10_000))
  await admit('req_01', 'a')
  await store.settle(billed('req_01', 10))
  await admit('req_02', 'b', { modelAsked: 'gpt-6-luna' })
  await store.settle(billed('req_02', 7, { model: 'gpt-6-luna', estimated: true }))
  await admit('req_03', 'a')
  await store.settle(closing('req_03', { ...nothing, state: 'released' }))
  await admit('req_04', 'a')
  await admit('req_05', 'b')
  await store.interruptOpenCalls(NOON + 9_000)
  await store.settle(billed('req_05', 3))
  await admit('req_06', 'b', { modelAsked: 'unheard-of' })
  await store.settle(billed('req_06', 5, { model: 'unheard-of' }))
  await admit('req_07', 'a', { hold: { kind: 'none' } })
  await store.settle(closing('req_07', nothing))
  await admit('req_09', 'b')
  await store.settle(billed('req_09', 10))
  await admit('req_10', 'a')
}

export function fillLedger(ledger: TestLedger): Promise<void> {
  return withStore(ledger, fillStore)
}
