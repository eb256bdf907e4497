import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { Admission, Budget, CallOpening, CallRefusal, HeldBy, Hold } from '../../ledger/call.ts'
import { FOREIGN_FILE, HOLD_NANOS_MAX, UNBOUNDED_NANOS } from '../../ledger/decide-admission.ts'
import type { StoreClock } from '../operations/sql.ts'
import { toKeptJson } from './any-text.ts'
import type { CallMonths } from './call-months.ts'
import type { Database } from './database.ts'
import type { Outcome } from './lane.ts'
import type { Node } from './node.ts'

export interface AdmissionParts {
  readonly db: Database
  readonly node: Node
  readonly months: CallMonths
  readonly clock: StoreClock
}

/** A node that is fenced again and again while it asks has other troubles than one more try could mend. */
const TRIES_MAX = 3

/** Admission of a batch: the statement is a function of the database, see functions/admission.ts. */
export async function admitCalls(
  parts: AdmissionParts,
  openings: readonly CallOpening[],
): Promise<readonly Outcome<Admission>[]> {
  const { node, months, clock } = parts
  if (clock === 'caller') for (const { atMs } of openings) await months.have(atMs)
  const json = toKeptJson(openings.map(toJson))
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const answers = await months.makingThem(async () => ask(parts, await node.registered(), json))
    if (answers !== null) return answers.map((answer) => ({ ok: true, value: admissionOf(answer) }))
  }
  throw new StoreUnavailable('this node has been given up by the others')
}

/** Null if the node was given up, or has given up what it was asking for. */
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
