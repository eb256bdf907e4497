import type { DatabaseSync } from 'node:sqlite'
import { CREDIT_BACK } from '../../ledger/audited.ts'
import type { CreditBack, CreditBackOutcome } from '../../ledger/ledger-store.ts'
import type { OnceBook } from './once.ts'
import type { Operations } from './operations.ts'
import { integer, nanos, type Row, text } from './rows.ts'

type GivenBack = Extract<CreditBackOutcome, { kind: 'credited' }>
type AskedCall = CreditBack['calls'][number]

/**
 * Gives back what calls cost. A call stays as it was billed, and its key's month with it: what was spent was spent.
 * The entry, the account's credit, the mark on the call and what its day shows as credited move together.
 */
export function creditBackOperation(
  db: DatabaseSync,
  onceBook: OnceBook,
  getBalance: Operations['getBalance'],
): Pick<Operations, 'creditBack'> {
  const selectCall = db.prepare(
    `SELECT state, credited, key_id, day, coalesce(model_served, model_asked, '') AS model,
       coalesce(cost_nanos, 0) - (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE call_id = call.id) AS paid_nanos
     FROM call WHERE id = ? AND account_id = ?`,
  )
  // A second entry of the kind would break the unique index, and with it the whole command.
  const insertEntry = db.prepare(
    `INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
     VALUES (?, ?, 'credit_back', ?, ?, ?, '${CREDIT_BACK}', ?)`,
  )
  const selectEntry = db.prepare(
    `SELECT id, amount_nanos FROM credit WHERE call_id = ? AND once = '${CREDIT_BACK}' AND account_id = ?`,
  )
  const markCall = db.prepare('UPDATE call SET credited = 1 WHERE id = ?')
  const moveRollup = db.prepare(
    `UPDATE rollup SET credited_nanos = credited_nanos + ?
     WHERE account_id = ? AND day = ? AND model = ? AND key_id = ?`,
  )
  // Only a top-up makes credit count: who never prepaid must not be held to a balance by getting money back.
  const moveAccount = db.prepare('UPDATE account SET credited_nanos = credited_nanos + ? WHERE id = ?')

  function creditOne(asked: AskedCall, command: CreditBack): CreditBackOutcome {
    const { requestId, creditId } = asked
    const call = selectCall.get(requestId, command.accountId)
    if (call === undefined) return { kind: 'not_found', requestId }
    const state = text(call, 'state')
    if (state === 'in_flight') return { kind: 'in_flight', requestId }
    if (call['credited'] === 1n) return { kind: 'already_credited', requestId }
    const amountNanos = nanos(call, 'paid_nanos')
    if (state !== 'settled' || amountNanos <= 0n) return { kind: 'nothing_to_credit', requestId }
    book(call, { kind: 'credited', requestId, creditId, amountNanos }, command)
    return { kind: 'credited', requestId, creditId, amountNanos }
  }

  function book(call: Row, { requestId, creditId, amountNanos }: GivenBack, command: CreditBack): void {
    const { accountId, reason, atMs } = command
    insertEntry.run(creditId, accountId, amountNanos, reason, requestId, integer(atMs))
    markCall.run(requestId)
    const day = [text(call, 'day'), text(call, 'model'), text(call, 'key_id')] as const
    if (moveRollup.run(amountNanos, accountId, ...day).changes !== 1n) {
      throw new Error(
        `there is no rollup for call ${requestId}; tollgate audit says what is wrong with the books`,
      )
    }
  }

  /** What this command came to when it was done: how each call fared is kept, its entry is in the journal. */
  function readAgain(subject: string, { calls, accountId }: CreditBack): CreditBackOutcome[] | null {
    if (!subject.startsWith(SUBJECT) || subject.length !== SUBJECT.length + calls.length) return null
    const outcomes: CreditBackOutcome[] = []
    for (const [i, { requestId }] of calls.entries()) {
      const kind = KINDS[Number(subject[SUBJECT.length + i])]
      if (kind === undefined) return null
      if (kind !== 'credited') {
        outcomes.push({ kind, requestId })
        continue
      }
      const entry = selectEntry.get(requestId, accountId)
      if (entry === undefined) return null
      outcomes.push({
        kind,
        requestId,
        creditId: text(entry, 'id'),
        amountNanos: nanos(entry, 'amount_nanos'),
      })
    }
    return outcomes
  }

  return {
    creditBack(command, once) {
      const { accountId } = command
      const repeated = onceBook.repeated(once, (subject) => {
        const calls = readAgain(subject, command)
        return calls === null ? null : { calls, balance: getBalance(accountId) }
      })
      if (repeated !== null) return repeated
      const calls = command.calls.map((asked) => creditOne(asked, command))
      const total = calls.reduce((sum, call) => (call.kind === 'credited' ? sum + call.amountNanos : sum), 0n)
      if (total > 0n) moveAccount.run(total, accountId)
      onceBook.keep(once, SUBJECT + calls.map(({ kind }) => KINDS.indexOf(kind)).join(''))
      return { kind: 'done', value: { calls, balance: getBalance(accountId) } }
    },
  }
}

/**
 * What is kept under an `Idempotency-Key`: a digit for each call, in the order asked. The calls themselves need not
 * be kept, since only the very same request is a repetition. The order of the kinds is on disk: add at the end.
 */
const SUBJECT = 'credit_back:'
const KINDS = [
  'credited',
  'already_credited',
  'nothing_to_credit',
  'in_flight',
  'not_found',
] as const satisfies readonly CreditBackOutcome['kind'][]
