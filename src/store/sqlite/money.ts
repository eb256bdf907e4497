import type { DatabaseSync } from 'node:sqlite'
import type { Balance } from '../../ledger/ledger-store.ts'
import type { Operations } from './operations.ts'
import { integer, nanos, present, type Row } from './rows.ts'

type MoneyOperations = Pick<Operations, 'getBalance' | 'addCredit' | 'keepPriceVersion'>

/** The account's balance, the journal of credits, and the price versions that bills were made with. */
export function moneyOperations(db: DatabaseSync): MoneyOperations {
  const columns = 'credited_nanos, charged_nanos, held_nanos, credit_enforced'
  const selectAccount = db.prepare(`SELECT ${columns} FROM account WHERE id = ?`)
  const insertCredit = db.prepare(
    "INSERT INTO credit (id, account_id, kind, amount_nanos, reason, at_ms) VALUES (?, ?, 'top_up', ?, ?, ?)",
  )
  const creditAccount = db.prepare(
    `UPDATE account SET credited_nanos = credited_nanos + ?, credit_enforced = 1 WHERE id = ? RETURNING ${columns}`,
  )
  const insertVersion = db.prepare('INSERT OR IGNORE INTO price_version (id, json) VALUES (?, ?)')

  return {
    getBalance: (accountId) => balance(present(selectAccount.get(accountId))),

    addCredit(credit) {
      insertCredit.run(credit.id, credit.accountId, credit.amountNanos, credit.reason, integer(credit.atMs))
      return balance(present(creditAccount.get(credit.amountNanos, credit.accountId)))
    },

    keepPriceVersion(id, json) {
      insertVersion.run(id, json)
      return null
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
