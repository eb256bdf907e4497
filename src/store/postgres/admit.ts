import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { Admission, Budget, CallOpening, CallRefusal, HeldBy, Hold } from '../../ledger/call.ts'
import { FOREIGN_FILE, HOLD_NANOS_MAX, UNBOUNDED_NANOS } from '../../ledger/decide-admission.ts'
import { statusSql } from '../operations/keys.ts'
import { now, type StoreClock, sql } from '../operations/sql.ts'
import { bool, nanos, nanosOrNull, text } from '../rows.ts'
import type { Store } from '../store.ts'
import { toKeptJson } from './any-text.ts'
import type { Outcome } from './batcher.ts'
import type { Database } from './database.ts'
import type { Node } from './node.ts'
import { dialectOf, runStatement } from './run-operation.ts'

export interface AdmissionParts {
  readonly db: Database
  readonly node: Node
  readonly clock: StoreClock
}

/** A node that is fenced again and again while it asks has a trouble that one more try would not mend. */
const TRIES_MAX = 3

/** Admission of a batch: the statement is a function of the database, see functions/admission.ts. */
export async function admitCalls(
  parts: AdmissionParts,
  openings: readonly CallOpening[],
): Promise<readonly Outcome<Admission>[]> {
  const { node } = parts
  const json = toKeptJson(openings.map(toJson))
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const answers = await ask(parts, await node.registered(), json)
    if (answers !== null) return answers.map((answer) => ({ ok: true, value: admissionOf(answer) }))
  }
  throw new StoreUnavailable('this node has been given up by the others')
}

/** Null if the node was given up, or has raised its epoch since, and so has given up these admissions. */
async function ask(
  { db, node, clock }: AdmissionParts,
  { id, epoch }: { id: string; epoch: bigint },
  json: string,
): Promise<readonly Answer[] | null> {
  const [row] = await db.query('SELECT admit_calls($1, $2, $3, $4::jsonb) AS answers', [
    ...[id, epoch, clock === 'caller', json],
  ])
  const answers = (row?.['answers'] ?? null) as readonly Answer[] | null
  if (answers === null) node.refused(id, epoch)
  return answers
}

function toJson(opening: CallOpening) {
  const { digest, hold, ...rest } = opening
  return {
    ...rest,
    atMs: Math.trunc(opening.atMs),
    digest: Buffer.from(digest).toString('hex'),
    hold: holdToJson(hold),
    foreignFile: FOREIGN_FILE,
  }
}

/** Amounts travel as text: as JSON numbers they would pass through doubles. */
function holdToJson(hold: Hold) {
  switch (hold.kind) {
    case 'none':
      return { kind: 'none' }
    case 'bound':
      return { kind: 'bound', nanos: String(hold.nanos), listNanos: String(hold.listNanos) }
    case 'unbounded':
      return { kind: 'unbounded', unreachedNanos: String(UNBOUNDED_NANOS), mostNanos: String(HOLD_NANOS_MAX) }
  }
}

/** An admission as the function answers it. */
type Answer =
  | { keyId: string; accountId: string; logRequests: boolean; balanceNanos: string }
  | { refusal: InJson<CallRefusal>; balanceNanos?: string }
  | { by: InJson<HeldBy>; keyId: string; accountId: string; balanceNanos: string }

type InJson<T> = T extends { budget: Budget } ? Omit<T, 'budget'> & { budget: BudgetInJson } : T
type BudgetInJson = { spentNanos: string; heldNanos: string; capNanos: string; resetsAtMs: number }

function admissionOf(answer: Answer): Admission {
  if ('refusal' in answer) {
    const { refusal, balanceNanos } = answer
    return {
      kind: 'refused',
      refusal: 'budget' in refusal ? { ...refusal, budget: budgetOf(refusal.budget) } : refusal,
      balanceNanos: balanceNanos === undefined ? null : BigInt(balanceNanos),
    }
  }
  const { accountId } = answer
  const balanceNanos = BigInt(answer.balanceNanos)
  if ('by' in answer) {
    const { by, keyId } = answer
    const heldBy = 'budget' in by ? { ...by, budget: budgetOf(by.budget) } : by
    return { kind: 'held', by: heldBy, keyId, accountId, balanceNanos }
  }
  if (!('keyId' in answer)) throw new StoreRefused('an admission was answered with something else')
  return { kind: 'admitted', keyId: answer.keyId, accountId, logRequests: answer.logRequests, balanceNanos }
}

function budgetOf({ spentNanos, heldNanos, capNanos, resetsAtMs }: BudgetInJson): Budget {
  return {
    spentNanos: BigInt(spentNanos),
    heldNanos: BigInt(heldNanos),
    capNanos: BigInt(capNanos),
    resetsAtMs,
  }
}

const STATUS = statusSql(sql`now.at_ms`)

/** Looks up a key before a large body is taken in. */
export function lookUpKeyOperation(db: Database, clock: StoreClock): Pick<Store, 'lookUpKey'> {
  const dialect = dialectOf(clock)
  return {
    async lookUpKey(digest, atMs) {
      // A key that is not in force is only read: trying such a key again and again writes nothing. The latest use counts:
      // requests may be recognised in another order than that in which they came.
      const statement = sql`
        WITH now AS MATERIALIZED (SELECT ${now(atMs)} AS at_ms),
        used AS (
          UPDATE api_key SET last_used_at_ms = now.at_ms FROM now
          WHERE digest = ${digest} AND ${STATUS} = 'usable' AND coalesce(last_used_at_ms, now.at_ms - 1) < now.at_ms
        )
        SELECT 'api_key' AS kind, k.id, k.account_id, ${STATUS} AS status,
          k.monthly_budget_nanos, coalesce(m.spent_nanos, 0) AS spent_nanos,
          coalesce(m.held_nanos, 0) AS held_nanos, a.credit_enforced,
          a.credited_nanos - a.charged_nanos AS balance_nanos
        FROM api_key k CROSS JOIN now JOIN account a ON a.id = k.account_id
        LEFT JOIN key_month m ON m.key_id = k.id AND m.month = month_of(now.at_ms)
        WHERE digest = ${digest}
        UNION ALL
        SELECT 'admin_key', id, account_id, CASE WHEN revoked_at_ms IS NULL THEN 'usable' ELSE 'revoked' END,
          NULL, NULL, NULL, NULL, NULL
        FROM admin_key WHERE digest = ${digest}`
      const [row] = await runStatement(db, statement, dialect)
      if (row === undefined) return { kind: 'refused', reason: 'unknown_key' }
      const status = text(row, 'status') as 'usable' | 'revoked' | 'expired'
      if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
      const caller = { keyId: text(row, 'id'), accountId: text(row, 'account_id') }
      if (text(row, 'kind') === 'admin_key') return { kind: 'admin_key', ...caller }
      const means = {
        capNanos: nanosOrNull(row, 'monthly_budget_nanos'),
        spentNanos: nanos(row, 'spent_nanos'),
        heldNanos: nanos(row, 'held_nanos'),
        creditEnforced: bool(row, 'credit_enforced'),
        balanceNanos: nanos(row, 'balance_nanos'),
      }
      return { kind: 'api_key', ...caller, means }
    },
  }
}
