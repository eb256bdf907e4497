import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { CallClosing } from '../../ledger/call.ts'
import { integer } from './rows.ts'

/** How an account stands, with all that this batch has moved so far. */
export interface AccountRow {
  readonly id: string
  readonly creditEnforced: boolean
  balanceNanos: bigint
  heldNanos: bigint
  movedHeldNanos: bigint
  movedChargedNanos: bigint
}

/** What this batch moves of a key's month. */
export interface MonthMoves {
  readonly keyId: string
  readonly month: string
  heldNanos: bigint
  spentNanos: bigint
  lostNanos: bigint
}

interface DayMoves {
  readonly accountId: string
  readonly day: string
  readonly model: string
  readonly keyId: string
  requests: number
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  costNanos: bigint
  listNanos: bigint
  unpriced: number
  estimated: number
}

/**
 * The rows that every call of an account, a key or a model changes. In a batch each of them is read once and written
 * once, however many calls of it there are; nothing is kept from one batch to the next, nor past a command that may
 * look at these rows itself.
 */
export interface BatchRows {
  account(id: string): AccountRow
  month(keyId: string, month: string): MonthMoves
  /**
   * A use that no call comes of: a call says itself when its key was used. The latest instant counts, since requests
   * may be decided in another order than that in which they came.
   */
  used(keyId: string, atMs: number): void
  /** A settled call in the sums of its day. */
  count(closing: CallClosing, accountId: string, day: string, model: string, keyId: string): void
  /** Writes all that was moved. To be called before the commit, and before anybody else reads these rows. */
  write(): void
  /** After a commit or a rollback. */
  forget(): void
}

export function prepareBatchRows(db: DatabaseSync): BatchRows {
  const selectAccount = inArrays(
    db.prepare(
      'SELECT credited_nanos - charged_nanos, held_nanos, credit_enforced FROM account WHERE id = ?',
    ),
  )
  const moveAccount = db.prepare(
    'UPDATE account SET held_nanos = held_nanos + ?, charged_nanos = charged_nanos + ? WHERE id = ?',
  )
  const moveMonth = db.prepare(
    `INSERT INTO key_month (key_id, month, held_nanos, spent_nanos, lost_nanos) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = held_nanos + excluded.held_nanos,
       spent_nanos = spent_nanos + excluded.spent_nanos, lost_nanos = lost_nanos + excluded.lost_nanos`,
  )
  const markUsed = db.prepare(
    'UPDATE api_key SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?',
  )
  const addRollup = db.prepare(
    `INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cache_read_tokens,
                         cache_write_tokens, cost_nanos, list_nanos, unpriced_requests, estimated_requests)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET requests = requests + excluded.requests,
       input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
       cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
       cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
       cost_nanos = cost_nanos + excluded.cost_nanos, list_nanos = list_nanos + excluded.list_nanos,
       unpriced_requests = unpriced_requests + excluded.unpriced_requests,
       estimated_requests = estimated_requests + excluded.estimated_requests`,
  )

  const accounts = new Map<string, AccountRow>()
  const months = new Map<string, MonthMoves>()
  const lastUses = new Map<string, number>()
  const days = new Map<string, DayMoves>()

  return {
    account(id) {
      const known = accounts.get(id)
      if (known !== undefined) return known
      const row = selectAccount.get(id) as unknown as readonly SQLOutputValue[] | undefined
      if (row === undefined) throw new Error(`there is no account ${id}`)
      const account: AccountRow = {
        id,
        balanceNanos: row[0] as bigint,
        heldNanos: row[1] as bigint,
        creditEnforced: row[2] === 1n,
        movedHeldNanos: 0n,
        movedChargedNanos: 0n,
      }
      accounts.set(id, account)
      return account
    },

    month(keyId, month) {
      const name = `${keyId} ${month}`
      const known = months.get(name)
      if (known !== undefined) return known
      const moves = { keyId, month, heldNanos: 0n, spentNanos: 0n, lostNanos: 0n }
      months.set(name, moves)
      return moves
    },

    used(keyId, atMs) {
      const known = lastUses.get(keyId)
      if (known === undefined || known < atMs) lastUses.set(keyId, atMs)
    },

    count(closing, accountId, day, model, keyId) {
      const name = `${accountId} ${keyId} ${day} ${model}`
      let moves = days.get(name)
      if (moves === undefined) {
        moves = { accountId, day, model, keyId, ...NOTHING_COUNTED }
        days.set(name, moves)
      }
      moves.requests += 1
      moves.input += closing.tokens.input
      moves.output += closing.tokens.output
      moves.cacheRead += closing.tokens.cacheRead
      moves.cacheWrite += closing.tokens.cacheWrite
      moves.costNanos += closing.costNanos
      moves.listNanos += closing.listNanos
      if (closing.unpriced) moves.unpriced += 1
      if (closing.estimated) moves.estimated += 1
    },

    write() {
      for (const { id, movedHeldNanos, movedChargedNanos } of accounts.values()) {
        if (movedHeldNanos !== 0n || movedChargedNanos !== 0n)
          moveAccount.run(movedHeldNanos, movedChargedNanos, id)
      }
      for (const { keyId, month, heldNanos, spentNanos, lostNanos } of months.values()) {
        if (heldNanos !== 0n || spentNanos !== 0n || lostNanos !== 0n)
          moveMonth.run(keyId, month, heldNanos, spentNanos, lostNanos)
      }
      for (const [keyId, atMs] of lastUses) markUsed.run(integer(atMs), keyId)
      for (const moves of days.values()) {
        addRollup.run(
          moves.accountId,
          moves.day,
          moves.model,
          moves.keyId,
          integer(moves.requests),
          integer(moves.input),
          integer(moves.output),
          integer(moves.cacheRead),
          integer(moves.cacheWrite),
          moves.costNanos,
          moves.listNanos,
          integer(moves.unpriced),
          integer(moves.estimated),
        )
      }
    },

    forget() {
      accounts.clear()
      months.clear()
      lastUses.clear()
      days.clear()
    },
  }
}

const NOTHING_COUNTED = {
  requests: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  costNanos: 0n,
  listNanos: 0n,
  unpriced: 0,
  estimated: 0,
}

/** Rows as arrays: an object takes as long again, for the names of its columns alone. */
export function inArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}
