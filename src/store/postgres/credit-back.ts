import { limits } from '../../kernel/limits.ts'
import { CREDIT_BACK } from '../../ledger/audited.ts'
import type { Balance, CreditBack, CreditBackOutcome } from '../../ledger/ledger-store.ts'
import type { Store } from '../store.ts'
import { toKeptJson } from './any-text.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { readBalance } from './money.ts'
import { FORGOTTEN_AT_ONCE_MAX, repeatedAs } from './once.ts'
import { nanos, present, text } from './rows.ts'
import type { StoreClock } from './store-clock.ts'

/** What the function answers: the outcomes, or what is kept under the name. Amounts are text: JSON's are doubles. */
type Answer =
  | { readonly calls: readonly AnsweredCall[]; readonly balance: AnsweredBalance }
  | { readonly subject: string; readonly fingerprint: string }
type AnsweredCall = { readonly kind: CreditBackOutcome['kind']; readonly nanos: string }
type AnsweredBalance = { readonly [Amount in Exclude<keyof Balance, 'enforced'>]: string } & {
  readonly enforced: boolean
}

/**
 * Gives back what calls cost. A call stays as it was billed, and its key's month with it: what was spent was spent.
 * The entry, the account's credit, the mark on the call and what its day shows as credited move together.
 */
export function creditBackOperation(db: Database, clock: StoreClock): Pick<Store, 'creditBack'> {
  /** What this command came to when it was done: how each call fared is kept, its entry is in the journal. */
  async function readAgain(
    subject: string,
    { calls, accountId }: CreditBack,
  ): Promise<CreditBackOutcome[] | null> {
    if (!subject.startsWith(SUBJECT) || subject.length !== SUBJECT.length + calls.length) return null
    const ids = toKeptJson(calls.map(({ requestId }) => requestId))
    const rows = await db.query(
      `SELECT id, call_id, amount_nanos FROM credit
       WHERE account_id = $1 AND once = $2 AND call_id = ANY (ARRAY(SELECT jsonb_array_elements_text($3::jsonb)))`,
      [accountId, CREDIT_BACK, ids],
    )
    const entries = new Map(rows.map((row) => [text(row, 'call_id'), row]))
    const outcomes: CreditBackOutcome[] = []
    for (const [i, { requestId }] of calls.entries()) {
      const kind = KINDS[Number(subject[SUBJECT.length + i])]
      if (kind === undefined) return null
      if (kind !== 'credited') {
        outcomes.push({ kind, requestId })
        continue
      }
      const entry = entries.get(requestId)
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
    async creditBack(command, once) {
      const { accountId } = command
      const bound = new Bound()
      const [row] = await db.query(
        `SELECT credit_back(${[
          bound.as('text', accountId),
          bound.as('jsonb', toKeptJson(command.calls)),
          bound.as('text', command.reason),
          bound.integer(command.atMs),
          `'${CREDIT_BACK}'`,
          `'{${KINDS.join(',')}}'`,
          `'${SUBJECT}'`,
          bound.as('text', once?.name ?? null),
          bound.as('bytea', once?.fingerprint ?? null),
          bound.integer(once === null || clock === 'database' ? null : once.atMs),
          `${limits.onceMs}`,
          `${FORGOTTEN_AT_ONCE_MAX}`,
        ].join(', ')}) AS answer`,
        bound.values,
      )
      const answer = present(row)['answer'] as Answer
      if ('subject' in answer) {
        const fingerprint = Buffer.from(answer.fingerprint, 'hex')
        return repeatedAs(answer.subject, fingerprint, once, async (subject) => {
          const calls = await readAgain(subject, command)
          return calls === null ? null : { calls, balance: await readBalance(db, accountId) }
        })
      }
      const calls = command.calls.map((asked, i) => outcomeOf(asked, answer.calls[i]))
      return { kind: 'done', value: { calls, balance: balanceOf(answer.balance) } }
    },
  }
}

function outcomeOf(
  { requestId, creditId }: CreditBack['calls'][number],
  outcome: AnsweredCall | undefined,
): CreditBackOutcome {
  if (outcome === undefined) throw new Error(`there is no outcome for call ${requestId}`)
  const { kind } = outcome
  return kind === 'credited'
    ? { kind, requestId, creditId, amountNanos: BigInt(outcome.nanos) }
    : { kind, requestId }
}

function balanceOf({ creditedNanos, chargedNanos, heldNanos, enforced }: AnsweredBalance): Balance {
  return {
    creditedNanos: BigInt(creditedNanos),
    chargedNanos: BigInt(chargedNanos),
    heldNanos: BigInt(heldNanos),
    enforced,
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
