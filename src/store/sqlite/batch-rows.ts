import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { KEY_LIMITS } from '../../keys/key-store.ts'
import type { SpentCall } from '../../ledger/budget-crossings.ts'
import type { CallClosing } from '../../ledger/call.ts'
import { TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { inArrays, integer } from './bind.ts'
import { prepareTellSettled, type TellSettled } from './tell-settled.ts'

/** How SQLite gives the columns of a key's limits. */
interface LimitCells {
  readonly 'nanos?': bigint | null
  readonly 'count?': bigint | null
  readonly 'names?': string | null
  readonly flag: bigint
}

type CellsOf<Limits extends readonly { readonly kind: keyof LimitCells }[]> = {
  readonly [At in keyof Limits]: LimitCells[Limits[At]['kind']]
}

/** A key with its figures of the month and its limits, in the order of the statement's columns. */
export type KeyRow = readonly [
  id: string,
  accountId: string,
  revokedAtMs: bigint | null,
  spentNanos: bigint,
  heldNanos: bigint,
  hasFloors: bigint,
  ...limits: CellsOf<typeof KEY_LIMITS>,
]

/** The figures of an account, with all moves of this batch so far. */
export interface AccountRow {
  readonly id: string
  readonly creditEnforced: boolean
  /** Whether the account has a webhook endpoint that is enabled. */
  readonly isTold: boolean
  balanceNanos: bigint
  heldNanos: bigint
  movedHeldNanos: bigint
  movedChargedNanos: bigint
}

/** The moves of this batch on a key's month. */
export interface MonthMoves {
  readonly keyId: string
  readonly month: string
  heldNanos: bigint
  spentNanos: bigint
  lostNanos: bigint
  /** The calls that cost something, of an account that has an endpoint which is enabled. */
  told: { readonly accountId: string; readonly calls: SpentCall[] } | null
}

/** The additions of this batch to a day. */
interface DayMoves {
  readonly of: readonly [accountId: string, day: string, model: string, keyId: string]
  requests: number
  /** The tokens in the order of `TOKEN_COLUMNS`. */
  readonly tokens: [input: number, output: number, cacheRead: number, cacheWrite: number]
  costNanos: bigint
  listNanos: bigint
  unpriced: number
  estimated: number
}

const DAY_SUMS = [
  'requests',
  ...Object.values(TOKEN_COLUMNS),
  ...['cost_nanos', 'list_nanos', 'unpriced_requests', 'estimated_requests'],
]

/** Uses of keys beyond this number are written even if nothing else is. */
const NOTED_USES_MAX = 200

/**
 * The rows that every call of an account, a key or a model reads or changes. In a batch each row is read once and written
 * once, however many calls use it: within a transaction no other connection can change it. No row is kept from one batch
 * to the next, nor past a command that may look at these rows itself.
 */
export interface BatchRows {
  /** The key with the figures as they stand in the tables, without the moves of this batch. */
  key(digest: Uint8Array, month: string): KeyRow | undefined
  account(id: string): AccountRow
  month(keyId: string, month: string): MonthMoves
  /**
   * A use of a key that no call comes of: the record of a call says itself when its key was used. The latest instant
   * counts, since requests may be decided in another order than that in which they came.
   */
  used(keyId: string, atMs: number): void
  /** A use of a key that waits to be written together with something else. A crash may lose it. */
  noteUse(keyId: string, atMs: number): void
  /** Whether uses of keys are noted and not written yet. */
  hasNotedUses(): boolean
  /** Whether the noted uses can wait for more. */
  notedUsesCanWait(): boolean
  /** Adds a settled call to the sums of its day. */
  count(
    closing: CallClosing,
    requests: number,
    accountId: string,
    day: string,
    model: string,
    keyId: string,
  ): void
  /** The events that settlement tells by itself; thresholds that a call has crossed are found when the month is written. */
  readonly tell: Pick<TellSettled, 'unpriced' | 'balance'>
  /** To be called when a month has got floors: the key's row that this batch has read may say that there are none. */
  forgetKeys(): void
  /** Writes all moves. To be called before the commit, and before a command that reads these rows itself. */
  write(): void
  /** After the commit: noted uses are written now. */
  committed(): void
  rolledBack(): void
}

export function prepareBatchRows(db: DatabaseSync): BatchRows {
  const tell = prepareTellSettled(db)
  const selectKey = inArrays(
    db.prepare(
      `SELECT k.id, k.account_id, k.revoked_at_ms, coalesce(m.spent_nanos, 0), coalesce(m.held_nanos, 0),
              coalesce(m.has_floors, 0), ${KEY_LIMITS.map(({ column }) => `k.${column}`).join(', ')}
       FROM api_key k LEFT JOIN key_month m ON m.key_id = k.id AND m.month = ? WHERE k.digest = ?`,
    ),
  )
  const selectAccount = inArrays(
    db.prepare(
      `SELECT credited_nanos - charged_nanos, held_nanos, credit_enforced,
              EXISTS (SELECT 1 FROM webhook WHERE account_id = account.id AND enabled)
       FROM account WHERE id = ?`,
    ),
  )
  const moveAccount = db.prepare(
    'UPDATE account SET held_nanos = held_nanos + ?, charged_nanos = charged_nanos + ? WHERE id = ?',
  )
  const movesMonth = `INSERT INTO key_month (key_id, month, held_nanos, spent_nanos, lost_nanos) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = held_nanos + excluded.held_nanos,
       spent_nanos = spent_nanos + excluded.spent_nanos, lost_nanos = lost_nanos + excluded.lost_nanos`
  const moveMonth = db.prepare(movesMonth)
  const moveToldMonth = inArrays(db.prepare(`${movesMonth} RETURNING spent_nanos, held_nanos`))
  const markUsed = db.prepare(
    'UPDATE api_key SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?',
  )
  const addToDay = db.prepare(
    `INSERT INTO rollup (account_id, day, model, key_id, ${DAY_SUMS.join(', ')})
     VALUES (?, ?, ?, ?, ${DAY_SUMS.map(() => '?').join(', ')})
     ON CONFLICT (account_id, day, model, key_id)
     DO UPDATE SET ${DAY_SUMS.map((sum) => `${sum} = ${sum} + excluded.${sum}`).join(', ')}`,
  )

  const keys = new Map<string, KeyRow>()
  const accounts = new Map<string, AccountRow>()
  const months = new Map<string, MonthMoves>()
  const lastUses = new Map<string, number>()
  const days = new Map<string, DayMoves>()
  const notedUses = new Map<string, number>()
  let noted = 0

  function forget(): void {
    for (const rows of [keys, accounts, months, lastUses, days]) rows.clear()
    tell.forget()
  }

  return {
    tell,

    key(digest, month) {
      const name = `${Buffer.from(digest.buffer, digest.byteOffset, digest.length).toString('latin1')}${month}`
      const known = keys.get(name)
      if (known !== undefined) return known
      const row = selectKey.get(month, digest) as unknown as KeyRow | undefined
      if (row !== undefined) keys.set(name, row)
      return row
    },

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
        isTold: row[3] === 1n,
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
      const moves: MonthMoves = { keyId, month, heldNanos: 0n, spentNanos: 0n, lostNanos: 0n, told: null }
      months.set(name, moves)
      return moves
    },

    used: (keyId, atMs) => keepLatest(lastUses, keyId, atMs),

    noteUse(keyId, atMs) {
      noted += 1
      keepLatest(notedUses, keyId, atMs)
    },

    hasNotedUses: () => noted > 0,
    notedUsesCanWait: () => noted < NOTED_USES_MAX,

    count({ tokens, costNanos, listNanos, unpriced, estimated }, requests, accountId, day, model, keyId) {
      const name = `${accountId} ${day} ${model} ${keyId}`
      let moves = days.get(name)
      if (moves === undefined) {
        const of = [accountId, day, model, keyId] as const
        moves = {
          of,
          requests: 0,
          tokens: [0, 0, 0, 0],
          costNanos: 0n,
          listNanos: 0n,
          unpriced: 0,
          estimated: 0,
        }
        days.set(name, moves)
      }
      moves.requests += requests
      moves.tokens[0] += tokens.input
      moves.tokens[1] += tokens.output
      moves.tokens[2] += tokens.cacheRead
      moves.tokens[3] += tokens.cacheWrite
      moves.costNanos += costNanos
      moves.listNanos += listNanos
      if (unpriced) moves.unpriced += requests
      if (estimated) moves.estimated += requests
    },

    forgetKeys: () => keys.clear(),

    write() {
      for (const [keyId, atMs] of notedUses) keepLatest(lastUses, keyId, atMs)
      for (const { id, movedHeldNanos, movedChargedNanos } of accounts.values()) {
        if (movedHeldNanos !== 0n || movedChargedNanos !== 0n)
          moveAccount.run(movedHeldNanos, movedChargedNanos, id)
      }
      for (const { keyId, month, heldNanos, spentNanos, lostNanos, told } of months.values()) {
        if (heldNanos === 0n && spentNanos === 0n && lostNanos === 0n) continue
        const moves = [keyId, month, heldNanos, spentNanos, lostNanos] as const
        if (told === null) {
          moveMonth.run(...moves)
        } else {
          const [spent, held] = moveToldMonth.get(...moves) as unknown as readonly [bigint, bigint]
          tell.month({ ...told, keyId, month, spentNanos: spent, heldNanos: held })
        }
      }
      for (const [keyId, atMs] of lastUses) markUsed.run(integer(atMs), keyId)
      for (const { of, requests, tokens, costNanos, listNanos, unpriced, estimated } of days.values()) {
        const counts = [integer(unpriced), integer(estimated)]
        addToDay.run(...of, integer(requests), ...tokens.map(integer), costNanos, listNanos, ...counts)
      }
      forget()
    },

    committed() {
      noted = 0
      notedUses.clear()
    },

    rolledBack: forget,
  }
}

function keepLatest(uses: Map<string, number>, keyId: string, atMs: number): void {
  uses.set(keyId, Math.max(atMs, uses.get(keyId) ?? atMs))
}
