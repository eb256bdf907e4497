import type { Balance, Credited } from '../../ledger/ledger-store.ts'
import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { CLAIMED_COLUMNS, claimName, repeatedIn } from './once.ts'
import { bool, nanos, number, present, type Row, text } from './rows.ts'
import type { StoreClock } from './store-clock.ts'

type MoneyOperations = Pick<Store, 'getBalance' | 'addCredit'>

const BALANCE_COLUMNS = 'credited_nanos, charged_nanos, held_nanos, credit_enforced'

/** The account's balance, the journal of credits, and the price versions that bills were made with. */
export function moneyOperations(db: Database, clock: StoreClock): MoneyOperations {
  async function readCredited(accountId: string, id: string): Promise<Credited | null> {
    const [row] = await db.query(
      `SELECT credit.id, amount_nanos, reason, at_ms, ${BALANCE_COLUMNS}
       FROM credit JOIN account ON account.id = account_id WHERE credit.id = $1 AND account_id = $2`,
      [id, accountId],
    )
    if (row === undefined) return null
    const credit = {
      id: text(row, 'id'),
      accountId,
      amountNanos: nanos(row, 'amount_nanos'),
      reason: text(row, 'reason'),
      atMs: number(row, 'at_ms'),
    }
    return { credit, balance: balanceIn(row) }
  }

  return {
    getBalance: (accountId) => readBalance(db, accountId),

    async addCredit(credit, once) {
      const { id, accountId, amountNanos } = credit
      const bound = new Bound()
      const amount = bound.as('bigint', amountNanos)
      const [row] = await db.query(
        `WITH ${claimName(bound, once, id, clock)}, entry AS (
           INSERT INTO credit (id, account_id, kind, amount_nanos, reason, at_ms)
           SELECT ${bound.as('text', id)}, ${bound.as('text', accountId)}, 'top_up', ${amount},
             ${bound.as('text', credit.reason)}, ${bound.integer(credit.atMs)}
           FROM claimed WHERE mine
           RETURNING account_id
         ), moved AS (
           UPDATE account SET credited_nanos = credited_nanos + ${amount}, credit_enforced = true
           FROM entry WHERE account.id = entry.account_id
           RETURNING ${BALANCE_COLUMNS}
         )
         SELECT ${CLAIMED_COLUMNS}, moved.* FROM claimed LEFT JOIN moved ON true`,
        bound.values,
      )
      const answer = present(row)
      return (
        repeatedIn(answer, once, (booked) => readCredited(accountId, booked)) ?? {
          kind: 'done',
          value: { credit, balance: balanceIn(answer) },
        }
      )
    },
  }
}

export async function readBalance(db: Database, accountId: string): Promise<Balance> {
  const [row] = await db.query(`SELECT ${BALANCE_COLUMNS} FROM account WHERE id = $1`, [accountId])
  return balanceIn(present(row))
}

function balanceIn(row: Row): Balance {
  return {
    creditedNanos: nanos(row, 'credited_nanos'),
    chargedNanos: nanos(row, 'charged_nanos'),
    heldNanos: nanos(row, 'held_nanos'),
    enforced: bool(row, 'credit_enforced'),
  }
}
