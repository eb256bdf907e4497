import type { CallState } from '../../../src/kernel/vocabulary.ts'
import type { KeyRecord } from '../../../src/keys/key-store.ts'
import type { Balance } from '../../../src/ledger/account.ts'

/** It shares only types with src. Values are replaced, never changed, so that a copy is cheap. */
export interface World {
  nowMs: number
  readonly accounts: Map<string, Balance>
  readonly keys: Map<string, KeyModel>
  /** Months by budget and month. A budget has the id of the first of its keys. */
  readonly months: Map<string, MonthModel>
  /** The last day in which the sums of a budget have moved, and what was spent on it. */
  readonly days: Map<string, DayModel>
  /** The largest difference of a cost from its bound, by budget and month. */
  readonly overruns: Map<string, bigint>
  /** All calls that are open, and the last calls that have ended. */
  readonly calls: Map<string, CallModel>
  /** Files by account and file. */
  readonly files: Map<string, FileModel>
  /** Events that have moved money since the last read. */
  readonly events: MoneyEvent[]
}

export type KeyModel = Omit<KeyRecord, 'month'>
export type MonthModel = Omit<KeyRecord['month'], 'daySpentNanos'>

/** Days are counted from the first of January 1970. */
interface DayModel {
  readonly day: number
  readonly spentNanos: bigint
}

export interface CallModel {
  readonly id: string
  readonly keyId: string
  readonly accountId: string
  readonly state: CallState
  readonly startedAtMs: number
  /** The month that the call counts in. */
  readonly month: string
  readonly day: number
  readonly endedAtMs: number | null
  readonly holdNanos: bigint
  /** The hold as it counts against the account. */
  readonly accountHoldNanos: bigint
  readonly holdListNanos: bigint
  /** By how much the hold counts less against the account. */
  readonly shortNanos: bigint
  /** 0: the call has no bound. */
  readonly boundNanos: bigint
  readonly costNanos: bigint | null
  readonly lostNanos: bigint
  readonly balanceNanos: bigint | null
  readonly overrun: boolean
}

interface FileModel {
  readonly keyId: string
  readonly models: readonly string[]
}

export type MoneyEvent =
  | {
      readonly kind: 'admitted'
      readonly call: CallModel
      /** The limits that the call was admitted under; null where there was none. */
      readonly capNanos: bigint | null
      readonly creditNanos: bigint | null
    }
  | {
      readonly kind: 'applied'
      readonly call: CallModel
      readonly costNanos: bigint
      readonly gaveBackNanos: bigint
      readonly gaveAccountBackNanos: bigint
    }

const NOTHING: MonthModel = { spentNanos: 0n, heldNanos: 0n, lostNanos: 0n }
const EMPTY: Balance = { creditedNanos: 0n, chargedNanos: 0n, heldNanos: 0n, creditEnforced: false }

export function createWorld(nowMs: number, accounts: readonly string[]): World {
  return {
    nowMs,
    accounts: new Map(accounts.map((id) => [id, EMPTY])),
    keys: new Map(),
    months: new Map(),
    days: new Map(),
    overruns: new Map(),
    calls: new Map(),
    files: new Map(),
    events: [],
  }
}

export function copyWorld(world: World): World {
  return {
    nowMs: world.nowMs,
    accounts: new Map(world.accounts),
    keys: new Map(world.keys),
    months: new Map(world.months),
    days: new Map(world.days),
    overruns: new Map(world.overruns),
    calls: new Map(world.calls),
    files: new Map(world.files),
    events: [...world.events],
  }
}

export const monthKey = (keyId: string, month: string): string => `${keyId} ${month}`

/** The first key of a chain of rotations: all of the chain draw on its budget. */
export function firstOf(world: World, keyId: string): string {
  const { rotatedFrom } = keyOf(world, keyId)
  return rotatedFrom === null ? keyId : firstOf(world, rotatedFrom)
}

export function budgetIdOf(world: World, keyId: string): string {
  return firstOf(world, keyId).replace(/^key_/, 'bud_')
}

/** All keys of a budget have the cap of the one that was edited. */
export function shareCap(world: World, keyId: string): void {
  const { monthlyBudgetNanos } = keyOf(world, keyId)
  for (const key of world.keys.values())
    if (firstOf(world, key.id) === firstOf(world, keyId))
      world.keys.set(key.id, { ...key, monthlyBudgetNanos })
}

/** The last month in which the sums of a budget changed. */
export function lastMonthOf(world: World, keyId: string): string {
  const prefix = `${firstOf(world, keyId)} `
  const names = [...world.months.keys()].filter((name) => name.startsWith(prefix))
  return names.map((name) => name.slice(prefix.length)).reduce((a, b) => (a > b ? a : b), '')
}

/** The month that a call counts in. A budget never goes back to an earlier month. */
export function countedMonth(world: World, keyId: string, atMs: number): string {
  const last = lastMonthOf(world, keyId)
  const { name } = monthAt(atMs)
  return last > name ? last : name
}

/** The day that a call counts on. A budget never goes back to an earlier month. */
export function countedDay(world: World, keyId: string, atMs: number): number {
  const month = MONTHS.find(({ name }) => name === countedMonth(world, keyId, atMs))
  return Math.floor(Math.max(atMs, mustHave(month).startMs) / DAY_MS)
}

function lastDayOf(world: World, keyId: string): DayModel {
  return world.days.get(firstOf(world, keyId)) ?? { day: 0, spentNanos: 0n }
}

export function sumsOf(world: World, keyId: string, month: string): MonthModel {
  return world.months.get(monthKey(firstOf(world, keyId), month)) ?? NOTHING
}

/** The sums that a record shows: 0 unless they belong to the last month in which they changed. */
export function monthOfKey(world: World, keyId: string, atMs: number): MonthModel {
  const { name } = monthAt(atMs)
  return name === lastMonthOf(world, keyId) ? sumsOf(world, keyId, name) : NOTHING
}

export function addToMonth(world: World, call: CallModel, more: Partial<MonthModel>): void {
  if (Object.values(more).every((nanos) => nanos === 0n)) return
  const last = lastDayOf(world, call.keyId)
  if (call.day >= last.day) {
    const before = call.day === last.day ? last.spentNanos : 0n
    const spentNanos = before + (more.spentNanos ?? 0n)
    world.days.set(firstOf(world, call.keyId), { day: call.day, spentNanos })
  }
  const old = sumsOf(world, call.keyId, call.month)
  world.months.set(monthKey(firstOf(world, call.keyId), call.month), {
    spentNanos: old.spentNanos + (more.spentNanos ?? 0n),
    heldNanos: old.heldNanos + (more.heldNanos ?? 0n),
    lostNanos: old.lostNanos + (more.lostNanos ?? 0n),
  })
}

export function accountOf(world: World, accountId: string): Balance {
  return mustHave(world.accounts.get(accountId))
}

export function keyOf(world: World, keyId: string): KeyModel {
  return mustHave(world.keys.get(keyId))
}

export function recordOf(world: World, keyId: string, atMs: number): KeyRecord {
  const { day, spentNanos } = lastDayOf(world, keyId)
  const daySpentNanos = day === Math.floor(atMs / DAY_MS) ? spentNanos : 0n
  return { ...keyOf(world, keyId), month: { ...monthOfKey(world, keyId, atMs), daySpentNanos } }
}

/** Null: the key is usable. A key ends at the instant of its expiry, and only the first end of a key counts. */
export function endOf(key: KeyModel, atMs: number): 'revoked_key' | 'expired_key' | null {
  if (key.revokedAtMs !== null) return 'revoked_key'
  return key.expiresAtMs === null || atMs < key.expiresAtMs ? null : 'expired_key'
}

export interface Month {
  readonly name: string
  readonly startMs: number
  readonly endMs: number
}

const DAY_MS = 86_400_000
const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** The months of a simulation, which begins in the first. A leap day is among the first days that it meets. */
const MONTHS: readonly Month[] = countMonths()
export const EPOCH_MS = mustHave(MONTHS[0]).startMs

/** Months, counted in days from the first of January 2027, a Friday 20,819 days after the first of January 1970. */
function countMonths(): Month[] {
  const months: Month[] = []
  let startMs = 20_819 * DAY_MS
  for (let year = 2027; year < 2060; year++) {
    for (const [i, days] of MONTH_DAYS.entries()) {
      const endMs = startMs + (i === 1 && year % 4 === 0 ? days + 1 : days) * DAY_MS
      months.push({ name: `${year}-${i < 9 ? '0' : ''}${i + 1}`, startMs, endMs })
      startMs = endMs
    }
  }
  return months.slice(10)
}

export function monthAt(atMs: number): Month {
  return mustHave(MONTHS.find((month) => atMs < month.endMs && atMs >= month.startMs))
}

export function mustHave<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('the simulation has lost track of something')
  return value
}
