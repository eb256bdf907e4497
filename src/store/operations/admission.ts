import { dayOf, monthOf } from '../../ledger/calendar.ts'
import { type Admission, type CallOpening, type CallRefusal, requestsOf } from '../../ledger/call.ts'
import { OPENING_COLUMNS } from '../../ledger/call-columns.ts'
import { decideAdmission, type KeyState } from '../../ledger/decide-admission.ts'
import { bool, namesOf, nanosOrNull, number, numberOrNull, present, type Row, text } from '../rows.ts'
import {
  ACCOUNT_COLUMNS,
  type AccountState,
  accountCeilings,
  type BatchParts,
  BUDGET_COLUMNS,
  type BudgetState,
  keyCeilings,
  LIMITED_ACCOUNT,
  LIMITED_BUDGET,
  LOCK_NODE,
  MoneyRows,
  overLimit,
  READ_CLOCK,
  SHARE_ACCOUNTS,
  SHARE_BUDGETS,
} from './money-rows.ts'
import { ABANDON, type Batch, lastStep, type StepRows, step } from './operation.ts'
import { type Filled, LIST, onPostgres, type ParameterType, prepare, prepareList, raw } from './sql.ts'

/**
 * Admission of a batch: the first step locks and reads all that the decisions depend on, the last one writes the holds.
 * Decisions are made one after the other, because each depends on the holds of those before it.
 */

/** Revocation waits for the admissions that hold this lock, and those that come later see it. Admissions do not wait for each other here. */
const READ_KEYS = prepareList('bytea')`
  SELECT id, account_id, budget_id, digest, revoked_at_ms, expires_at_ms, allowed_models, log_requests FROM api_key
  WHERE digest IN (${LIST}) ${onPostgres('FOR KEY SHARE')}`

const LOCK_BUDGETS = prepareList('bytea')`
  SELECT b.id FROM budget b WHERE b.id IN (SELECT budget_id FROM api_key WHERE digest IN (${LIST})) AND ${LIMITED_BUDGET}
  ORDER BY b.id FOR NO KEY UPDATE`

const LOCK_ACCOUNTS = prepareList('bytea')`
  SELECT a.id FROM account a WHERE a.id IN (SELECT account_id FROM api_key WHERE digest IN (${LIST})) AND ${LIMITED_ACCOUNT}
  ORDER BY a.id FOR NO KEY UPDATE`

const READ_BUDGETS = prepareList('bytea')`
  SELECT ${BUDGET_COLUMNS} FROM budget b WHERE b.id IN (SELECT budget_id FROM api_key WHERE digest IN (${LIST}))
  ${SHARE_BUDGETS}`

const READ_ACCOUNTS = prepareList('bytea')`
  SELECT ${ACCOUNT_COLUMNS} FROM account a WHERE a.id IN (SELECT account_id FROM api_key WHERE digest IN (${LIST}))
  ${SHARE_ACCOUNTS}`

const READ_FILE = prepare`
  SELECT f.models FROM batch_file f JOIN api_key k ON k.id = f.key_id AND k.account_id = f.account_id
  WHERE k.digest = ${'bytea'} AND f.file_id = ${'text'}`

const READ_FLOOR = prepare`
  SELECT max(nanos) AS nanos, max(list_nanos) AS list_nanos FROM hold_floor
  WHERE budget_id = ${'text'} AND month = ${'text'}
    AND ((endpoint = ${'text'} AND model = ${'text'}) OR (endpoint = '' AND model = ''))`

const TYPES: Readonly<Record<string, ParameterType>> = {
  text: 'text',
  count: 'bigint',
  flag: 'boolean',
  nanos: 'bigint',
}
const OPENING_TYPES = OPENING_COLUMNS.map(({ kind }) => TYPES[kind.replace('?', '')] ?? 'text')
const OPENING_LIST = raw(OPENING_COLUMNS.map(({ column }) => column).join(', '))

const INSERT_CALL = insertCall()

function insertCall(): (...values: Parameters<ReturnType<typeof prepare>>) => Filled {
  const fixed = [
    'text',
    'text',
    'text',
    'bigint',
    'text',
    'text',
    'bigint',
    'bigint',
    'bigint',
    'bigint',
  ] as const
  const types: ParameterType[] = [...fixed, ...OPENING_TYPES]
  const texts = [
    'INSERT INTO call (account_id, key_id, node_id, started_at_ms, month, day, hold_nanos, hold_list_nanos,\n    account_hold_nanos, requests, state, ',
    ') VALUES (',
    ...Array<string>(fixed.length - 1).fill(', '),
    ", 'in_flight', ",
    ...Array<string>(OPENING_TYPES.length - 1).fill(', '),
    ')',
  ]
  return prepare(texts as unknown as TemplateStringsArray, OPENING_LIST, ...types)
}

const MARK_USED = prepare`
  UPDATE api_key SET last_used_at_ms = ${'bigint'} WHERE id = ${'text'} AND coalesce(last_used_at_ms, 0) < ${'bigint'}`

/** `fenced`: the node was given up. `again`: a limit was set while the batch was read. Nothing was done in both cases. */
export function* admitCalls(
  openings: readonly CallOpening[],
  parts: BatchParts,
): Batch<readonly Admission[] | 'fenced' | 'again'> {
  const read = yield* readBatch(openings, parts)
  if (typeof read === 'string') {
    yield ABANDON
    return read
  }
  const { keys, money, files, nowMs } = read
  const floors = yield* readFloors(openings, read)
  const uses = new Map<string, number>()
  const inserts: Filled[] = []

  const admissions = openings.map((asked, n): Admission => {
    const key = keys.get(nameOf(asked.digest))
    if (key === undefined) return refused({ reason: 'unknown_key' }, null)
    const opening = nowMs === null ? asked : { ...asked, atMs: nowMs }
    const [keyId, budgetId, accountId] = ['id', 'budget_id', 'account_id'].map((column) =>
      text(key, column),
    ) as [string, string, string]
    const [budget, account] = [money.budget(budgetId), money.account(accountId)]
    const countedMs = countedAt(opening.atMs, budget)
    const [month, day] = [monthOf(countedMs), dayOf(countedMs)]
    const balanceNanos = account.creditedNanos - account.chargedNanos
    const decision = decideAdmission(opening, {
      ...stateOf(key, budget, account, month, day, opening.atMs),
      batchModels: namesOf(files[n]?.['models'] ?? null),
      holdFloor: floors[n] ?? null,
    })
    // The holder of a key that is not in force any more learns nothing of the account, and uses nothing.
    if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
    // The record of an admitted call has the instant of its use.
    if (!opening.askedBefore && decision.kind !== 'admit')
      uses.set(keyId, Math.max(opening.atMs, uses.get(keyId) ?? 0))
    if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
    if (decision.kind === 'wait')
      return { kind: 'held', by: decision.by, keyId, budgetId, accountId, balanceNanos }

    // After this point the call is admitted.
    const { holdNanos, holdListNanos, accountHoldNanos } = decision
    inserts.push(
      INSERT_CALL(
        ...[accountId, keyId, parts.node?.id ?? LOCAL_NODE, opening.atMs, month, day],
        ...[holdNanos, holdListNanos, accountHoldNanos, requestsOf(opening)],
        ...OPENING_COLUMNS.map(({ of }) => of(opening) as string | number | bigint | boolean | null),
      ),
    )
    const moved = { heldNanos: holdNanos, accountHeldNanos: accountHoldNanos, costNanos: 0n, lostNanos: 0n }
    money.move(budgetId, accountId, { month, day, ...moved })
    if (opening.isRequest) money.countRequest(budgetId, opening.atMs)
    const logRequests = bool(key, 'log_requests')
    return { kind: 'admitted', keyId, budgetId, accountId, logRequests, balanceNanos }
  })
  const marks = [...uses].map(([keyId, atMs]) => MARK_USED(atMs, keyId, atMs))
  yield lastStep([...money.writes(), ...inserts, ...marks])
  return admissions
}

/** The node of all calls that SQLite admits. Calls that are deferred belong to no node. */
export const LOCAL_NODE = 'local'

interface ReadBatch {
  readonly keys: ReadonlyMap<string, Row>
  readonly money: MoneyRows
  /** The batch file that each opening names, if its key has uploaded it. */
  readonly files: readonly (Row | undefined)[]
  /** The instant of all calls by the database's clock; null where each call brings its own. */
  readonly nowMs: number | null
}

function* readBatch(
  openings: readonly CallOpening[],
  { locks, node, clock }: BatchParts,
): Batch<ReadBatch | 'fenced' | 'again'> {
  const digests = [...new Map(openings.map(({ digest }) => [nameOf(digest), digest])).values()]
  const withFile = openings.filter(({ models }) => models.batchFile !== null)
  const rows = yield step([
    ...(node === null ? [] : [LOCK_NODE(node.id, node.epoch)]),
    READ_KEYS(digests),
    ...(locks ? [LOCK_BUDGETS(digests), LOCK_ACCOUNTS(digests)] : []),
    READ_BUDGETS(digests),
    READ_ACCOUNTS(digests),
    ...withFile.map(({ digest, models }) => READ_FILE(digest, models.batchFile)),
    ...(clock === 'database' ? [READ_CLOCK()] : []),
  ])
  const next = taker(rows)
  if (node !== null && next().length === 0) return 'fenced'
  const keys = new Map(next().map((row) => [nameOf(row['digest'] as Uint8Array), row]))
  const locked = locks ? ([next(), next()] as const) : null
  const money = new MoneyRows(next(), next())
  if (locked !== null && money.isUnlocked(...locked)) return 'again'
  const files = new Map(withFile.map((opening) => [opening, next()[0]]))
  const nowMs = clock === 'database' ? number(present(next()[0]), 'now_ms') : null
  return { keys, money, files: openings.map((opening) => files.get(opening)), nowMs }
}

/** Nearly all budgets have no hold floor to look up, and then there is no step. */
function* readFloors(
  openings: readonly CallOpening[],
  { keys, money, nowMs }: ReadBatch,
): Batch<readonly (KeyState['holdFloor'] | undefined)[]> {
  const asked = openings.map((opening) => {
    const key = keys.get(nameOf(opening.digest))
    if (key === undefined || opening.hold.kind !== 'bound') return null
    const budget = money.budget(text(key, 'budget_id'))
    const { id, month, hasFloors } = budget
    if (!hasFloors || month !== monthOf(countedAt(nowMs ?? opening.atMs, budget))) return null
    return READ_FLOOR(id, month, opening.endpoint, opening.modelAsked ?? '')
  })
  const statements = asked.filter((statement) => statement !== null)
  if (statements.length === 0) return []
  const next = taker(yield step(statements))
  return asked.map((statement) => {
    if (statement === null) return null
    const row = present(next()[0])
    const [nanos, listNanos] = [nanosOrNull(row, 'nanos'), nanosOrNull(row, 'list_nanos')]
    return nanos === null || listNanos === null ? null : { nanos, listNanos }
  })
}

function stateOf(
  key: Row,
  budget: BudgetState,
  account: AccountState,
  month: string,
  day: string,
  atMs: number,
): Omit<KeyState, 'batchModels' | 'holdFloor'> {
  return {
    revokedAtMs: numberOrNull(key, 'revoked_at_ms'),
    expiresAtMs: numberOrNull(key, 'expires_at_ms'),
    allowedModels: namesOf(key['allowed_models']),
    keyCeilings: keyCeilings(budget, month, day, atMs),
    mode: budget.mode,
    overLimit: overLimit(budget, atMs),
    accountCeilings: accountCeilings(account, month, atMs),
    creditEnforced: account.creditEnforced,
    balanceNanos: account.creditedNanos - account.chargedNanos,
    accountHeldNanos: account.heldNanos,
  }
}

/** Gives the rows of the statements of a step, one after the other. */
export function taker(rows: StepRows): () => readonly Row[] {
  let at = 0
  return () => rows[at++] ?? []
}

function nameOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

/** The instant that fixes the month and day of a call. Where the clock has stepped back, the period of a ceiling goes on. */
function countedAt(atMs: number, { month, day, dailyNanos }: BudgetState): number {
  const begun = dailyNanos === null ? `${month}-01` : day
  return dayOf(atMs) < begun ? Date.parse(begun) : atMs
}

function isKeyRefusal({ reason }: CallRefusal): boolean {
  return reason === 'revoked_key' || reason === 'expired_key'
}

function refused(refusal: CallRefusal, balanceNanos: bigint | null): Admission {
  return { kind: 'refused', refusal, balanceNanos }
}
