import type { DatabaseSync } from 'node:sqlite'
import type { Balance, Credited, NewCredit } from '../../ledger/ledger-store.ts'
import type { OnceBook } from './once.ts'
import type { Operations } from './operations.ts'
import { integer, nanos, number, present, type Row, text } from './rows.ts'

type MoneyOperations = Pick<Operations, 'getBalance' | 'addCredit'>

/** The account's balance, the journal of credits, and the price versions that bills were made with. */
export function moneyOperations(db: DatabaseSync, onceBook: OnceBook): MoneyOperations {
  const columns = 'credited_nanos, charged_nanos, held_nanos, credit_enforced'
  const selectAccount = db.prepare(`SELECT ${columns} FROM account WHERE id = ?`)
  const insertCredit = db.prepare(
    "INSERT INTO credit (id, account_id, kind, amount_nanos, reason, at_ms) VALUES (?, ?, 'top_up', ?, ?, ?)",
  )
  const selectCredit = db.prepare(
    'SELECT id, account_id, amount_nanos, reason, at_ms FROM credit WHERE id = ? AND account_id = ?',
  )
  const creditAccount = db.prepare(
    `UPDATE account SET credited_nanos = credited_nanos + ?, credit_enforced = 1 WHERE id = ? RETURNING ${columns}`,
  )

  const getBalance = (accountId: string): Balance => balance(present(selectAccount.get(accountId)))

  return {
    getBalance,

    addCredit(credit, once) {
      const { id, accountId, amountNanos } = credit
      const readNow = (booked: string): Credited | null => {
        const row = selectCredit.get(booked, accountId)
        return row === undefined ? null : { credit: creditOf(row), balance: getBalance(accountId) }
      }
      const repeated = onceBook.repeated(once, readNow)
      if (repeated !== null) return repeated
      insertCredit.run(id, accountId, amountNanos, credit.reason, integer(credit.atMs))
      const account = present(creditAccount.get(amountNanos, accountId))
      onceBook.keep(once, id)
      return { kind: 'done', value: { credit, balance: balance(account) } }
    },
  }
}

function balance(row: Row): Balance {
  return {
    creditedNanos: nanos(row, 'credited_nanos'),
    chargedNanos: nanos(row, 'charged_nanos'),
    heldNanos: nanos(row, 'held_nanos'),
    enforced: row['credit_enforced'] === 1n,
  }
}

function creditOf(row: Row): NewCredit {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    amountNanos: nanos(row, 'amount_nanos'),
    reason: text(row, 'reason'),
    atMs: number(row, 'at_ms'),
  }
}
