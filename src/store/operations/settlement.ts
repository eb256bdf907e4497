import { limits } from '../../kernel/limits.ts'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_COLUMNS, NOTHING_USED, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { nanos, nanosOrNull, number, present, type Row, text, textOrNull } from '../rows.ts'
import { taker } from './admission.ts'
import {
  ACCOUNT_COLUMNS,
  type BatchParts,
  BUDGET_COLUMNS,
  LIMITED_ACCOUNT,
  LIMITED_BUDGET,
  LOCK_NODE,
  MoneyRows,
  READ_CLOCK,
  SHARE_ACCOUNTS,
  SHARE_BUDGETS,
} from './money-rows.ts'
import { ABANDON, type Batch, inBatch, lastStep, type StepRows, step } from './operation.ts'
import { type Booking, ceilingsOf, READ_EVENT_SETTINGS, settlementEvents } from './settlement-events.ts'
import { type Filled, LIST, onPostgres, type ParameterType, prepare, prepareList, raw } from './sql.ts'

/**
 * Settlement of a batch: the first step locks and reads the calls and what they move, the last one closes each call once and
 * books its cost on the budget, the account and the day. A call that is closed already is not closed again.
 */

export interface SettlementParts extends BatchParts {
  /** The instant of the node's clock; it says how long ago a call ended, where the database's clock says when. */
  readonly nodeNowMs: number
}

const OF_CALLS = raw('SELECT key_id FROM call WHERE id IN')

const READ_CALLS = prepareList('text')`
  SELECT c.id, c.account_id, c.key_id, k.budget_id, c.state, c.started_at_ms, c.month, c.day, c.model_asked, c.endpoint,
    c.hold_nanos, c.hold_list_nanos, c.account_hold_nanos, c.lost_list_nanos, c.balance_nanos, c.requests
  FROM call c JOIN api_key k ON k.id = c.key_id WHERE c.id IN (${LIST}) ORDER BY c.id
  ${onPostgres('FOR NO KEY UPDATE OF c')}`

const LOCK_BUDGETS = prepareList('text')`
  SELECT b.id FROM budget b WHERE b.id IN (SELECT budget_id FROM api_key WHERE id IN (${OF_CALLS} (${LIST})))
    AND ${LIMITED_BUDGET} ORDER BY b.id FOR NO KEY UPDATE`

const LOCK_ACCOUNTS = prepareList('text')`
  SELECT a.id FROM account a WHERE a.id IN (SELECT account_id FROM call WHERE id IN (${LIST})) AND ${LIMITED_ACCOUNT}
  ORDER BY a.id FOR NO KEY UPDATE`

const READ_BUDGETS = prepareList('text')`
  SELECT ${BUDGET_COLUMNS} FROM budget b
  WHERE b.id IN (SELECT budget_id FROM api_key WHERE id IN (${OF_CALLS} (${LIST}))) ${SHARE_BUDGETS}`

const READ_ACCOUNTS = prepareList('text')`
  SELECT ${ACCOUNT_COLUMNS} FROM account a WHERE a.id IN (SELECT account_id FROM call WHERE id IN (${LIST}))
  ${SHARE_ACCOUNTS}`

const TYPES: Readonly<Record<string, ParameterType>> = {
  text: 'text',
  count: 'bigint',
  flag: 'boolean',
  nanos: 'bigint',
}

/**
 * The balance after the call. Where the account is not locked, other nodes may move it meanwhile: then the balance is read
 * after the charge of the whole batch, and the costs of later calls are added again.
 */
const CLOSE_CALL = prepare(
  [
    'UPDATE call SET state = ',
    ', ended_at_ms = ',
    ', overrun = ',
    ', lost_list_nanos = ',
    ', balance_nanos = coalesce(',
    ', (SELECT credited_nanos - charged_nanos FROM account WHERE account.id = call.account_id) + ',
    ...CLOSING_COLUMNS.map(({ column }, n) => `${n === 0 ? ')' : ''}, ${column} = `),
    ' WHERE id = ',
    ' AND state = ',
    '',
  ] as unknown as TemplateStringsArray,
  ...(['text', 'bigint', 'boolean', 'bigint', 'bigint', 'bigint'] as const),
  ...CLOSING_COLUMNS.map(({ kind }) => TYPES[kind.replace('?', '')] ?? 'text'),
  ...(['text', 'text'] as const),
)

const DAY_SUMS = [
  ...['requests', ...Object.values(TOKEN_COLUMNS)],
  ...['cost_nanos', 'list_nanos', 'unpriced_requests', 'estimated_requests'],
]

const ADD_TO_DAY = prepare(
  [
    `INSERT INTO rollup (account_id, day, model, key_id, ${DAY_SUMS.join(', ')}) VALUES (`,
    ...Array<string>(3 + DAY_SUMS.length).fill(', '),
    `) ON CONFLICT (account_id, day, model, key_id)
     DO UPDATE SET ${DAY_SUMS.map((sum) => `${sum} = rollup.${sum} + excluded.${sum}`).join(', ')}`,
  ] as unknown as TemplateStringsArray,
  ...(['text', 'text', 'text', 'text'] as const),
  ...DAY_SUMS.map(() => 'bigint' as const),
)

/** Null for a closing whose call does not exist. `fenced` and `again`: as in `admitCalls`. */
export function* settleCalls(
  closings: readonly CallClosing[],
  parts: SettlementParts,
): Batch<readonly (Settled | null)[] | 'fenced' | 'again'> {
  const { locks, node, clock } = parts
  const ids = [...new Set(closings.map(({ requestId }) => requestId))]
  const next = taker(
    yield step([
      ...(node === null ? [] : [LOCK_NODE(node.id, node.epoch)]),
      READ_CALLS(ids),
      ...(locks ? [LOCK_BUDGETS(ids), LOCK_ACCOUNTS(ids)] : []),
      READ_BUDGETS(ids),
      READ_ACCOUNTS(ids),
      READ_EVENT_SETTINGS(),
      ...(clock === 'database' ? [READ_CLOCK()] : []),
    ]),
  )
  if (node !== null && next().length === 0) {
    yield ABANDON
    return 'fenced'
  }
  const calls = new Map(next().map((row) => [text(row, 'id'), row]))
  const locked = locks ? ([next(), next()] as const) : null
  const money = new MoneyRows(next(), next())
  if (locked !== null && money.isUnlocked(...locked)) {
    yield ABANDON
    return 'again'
  }
  const settings = next()
  const nowMs = clock === 'database' ? number(present(next()[0]), 'now_ms') : null

  const booked = choose(closings, calls)
  const bookings = booked.map((closing) => book(closing, present(calls.get(closing.requestId)), money, nowMs))
  const floors = yield* raiseFloors(bookings)
  const laterNanos = laterCosts(bookings)
  const isExact = ({ accountId }: Booking) => !locks || money.isLimited(accountId)
  const moves = money.writes()
  const closes = bookings.map((booking, n) => {
    const { closing, call } = booking
    const endedAtMs = endOf(closing, call, nowMs, parts)
    return closeCall(
      closing,
      call,
      endedAtMs,
      isExact(booking) ? balanceOf(booking) : null,
      laterNanos[n] ?? 0n,
    )
  })
  const writes = [...moves, ...addToDays(bookings), ...closes, ...floors]
  const events = settlementEvents(bookings, settings)
  const rows = yield events.length === 0 ? lastStep(writes) : step(writes)
  if (events.length > 0) {
    for (const record of events) yield* inBatch(record())
    yield lastStep([])
  }

  const charged = balancesOf(rows.slice(0, moves.length))
  const balances = new Map(
    bookings.map((booking, n): [string, bigint] => {
      const { closing, accountId } = booking
      const shared = isExact(booking) ? undefined : charged.get(accountId)
      return [closing.requestId, shared === undefined ? balanceOf(booking) : shared + (laterNanos[n] ?? 0n)]
    }),
  )
  return closings.map((closing) => {
    const call = calls.get(closing.requestId)
    if (call === undefined) return null
    const balanceNanos = balances.get(closing.requestId) ?? nanosOrNull(call, 'balance_nanos')
    const { creditedNanos, chargedNanos } = money.account(text(call, 'account_id'))
    return { balanceNanos: balanceNanos ?? creditedNanos - chargedNanos, booked: booked.includes(closing) }
  })
}

/** The balances that the statements of `MoneyRows` return for accounts. */
function balancesOf(rows: StepRows): ReadonlyMap<string, bigint> {
  const accounts = rows.flatMap((of) => of.filter((row) => 'balance_nanos' in row))
  return new Map(accounts.map((row) => [text(row, 'id'), nanos(row, 'balance_nanos')]))
}

/** Closes open calls of a node as interrupted. Returns how many there were. */
export function* interruptCalls(
  nodeId: string,
  limit: number,
  atMs: number,
  parts: SettlementParts,
): Batch<number | 'fenced' | 'again'> {
  const [open = []] = yield step([READ_OPEN(nodeId, limit)])
  if (open.length === 0) {
    yield lastStep([])
    return 0
  }
  const state = 'interrupted'
  const settled = yield* settleCalls(
    open.map((row) => ({ ...NOTHING_USED, requestId: text(row, 'id'), state, atMs })),
    parts,
  )
  return typeof settled === 'string' ? settled : open.length
}

const READ_OPEN = prepare`
  SELECT id FROM call WHERE node_id = ${'text'} AND state = 'in_flight' ORDER BY id LIMIT ${'bigint'}`

/** Of closings of the same call the first counts, and one that says that the call is lost only if there is no other. */
function choose(closings: readonly CallClosing[], calls: ReadonlyMap<string, Row>): readonly CallClosing[] {
  const chosen = new Map<string, CallClosing>()
  for (const closing of closings) {
    const state = calls.get(closing.requestId)?.['state']
    // An interrupted call whose cost becomes known is booked; interrupting it a second time would change nothing.
    if (state !== 'in_flight' && (state !== 'interrupted' || closing.state === 'interrupted')) continue
    const before = chosen.get(closing.requestId)
    if (before === undefined || (before.state === 'interrupted' && closing.state !== 'interrupted'))
      chosen.set(closing.requestId, closing)
  }
  return [...chosen.values()]
}

function book(closing: CallClosing, call: Row, money: MoneyRows, nowMs: number | null): Booking {
  const [budgetId, accountId] = [text(call, 'budget_id'), text(call, 'account_id')]
  const account = money.account(accountId)
  // An interrupted call has given its hold back already.
  const isOpen = call['state'] === 'in_flight'
  money.move(budgetId, accountId, {
    ...{ month: text(call, 'month'), day: text(call, 'day'), costNanos: closing.costNanos },
    heldNanos: isOpen ? -nanos(call, 'hold_nanos') : 0n,
    accountHeldNanos: isOpen ? -nanos(call, 'account_hold_nanos') : 0n,
    lostNanos: lostOf(closing, call) - nanos(call, 'lost_list_nanos'),
  })
  const { creditedNanos, chargedNanos, heldNanos, creditEnforced } = account
  return {
    ...{ closing, call, budgetId, accountId, atMs: nowMs ?? closing.atMs },
    model: closing.modelServed ?? textOrNull(call, 'model_asked') ?? '',
    ceilings: ceilingsOf(call, budgetId, accountId, money),
    balance: { creditedNanos, chargedNanos, heldNanos, enforced: creditEnforced },
  }
}

const balanceOf = ({ balance }: Booking) => balance.creditedNanos - balance.chargedNanos

/** The operator's loss at list price: the whole hold of an interrupted call, the rest of it if upstream broke off. */
function lostOf({ state, listNanos, losesRest }: CallClosing, call: Row): bigint {
  const holdNanos = nanos(call, 'hold_list_nanos')
  if (state === 'interrupted') return holdNanos
  return state === 'settled' && losesRest === true && listNanos < holdNanos ? holdNanos - listNanos : 0n
}

/** The call ended as long ago by the database's clock as by this node's. */
function endOf(
  closing: CallClosing,
  call: Row,
  nowMs: number | null,
  { nodeNowMs }: SettlementParts,
): number {
  if (nowMs === null)
    return Math.max(closing.atMs, closing.state === 'interrupted' ? number(call, 'started_at_ms') : 0)
  return Math.max(number(call, 'started_at_ms'), nowMs - Math.max(0, nodeNowMs - closing.atMs))
}

function closeCall(
  closing: CallClosing,
  call: Row,
  endedAtMs: number,
  balanceNanos: bigint | null,
  laterNanos: bigint,
): Filled {
  return CLOSE_CALL(
    ...[closing.state, endedAtMs, isOverrun(closing, call), lostOf(closing, call), balanceNanos, laterNanos],
    ...CLOSING_COLUMNS.map(({ of }) => of(closing) as string | number | bigint | boolean | null),
    ...[closing.requestId, text(call, 'state')],
  )
}

function isOverrun({ costNanos }: CallClosing, call: Row): boolean {
  return nanos(call, 'hold_nanos') < costNanos
}

/** For each booking the costs of those after it in the same account: its balance is that before them. */
function laterCosts(bookings: readonly Booking[]): readonly bigint[] {
  const sums = new Map<string, bigint>()
  return bookings
    .toReversed()
    .map(({ accountId, closing }) => {
      const sum = sums.get(accountId) ?? 0n
      sums.set(accountId, sum + closing.costNanos)
      return sum
    })
    .reverse()
}

function addToDays(bookings: readonly Booking[]): readonly Filled[] {
  const days = new Map<string, { of: readonly string[]; sums: bigint[] }>()
  for (const { closing, call, accountId, model } of bookings) {
    const requests = BigInt(number(call, 'requests'))
    if (closing.state !== 'settled' || requests === 0n) continue
    const of = [accountId, text(call, 'day'), model, text(call, 'key_id')]
    const { tokens, costNanos, listNanos, unpriced, estimated } = closing
    const { input, output, cacheRead, cacheWrite } = tokens
    const added = [
      ...[
        requests,
        BigInt(input),
        BigInt(output),
        BigInt(cacheRead),
        BigInt(cacheWrite),
        costNanos,
        listNanos,
      ],
      ...[unpriced ? requests : 0n, estimated ? requests : 0n],
    ]
    const name = of.join('\0')
    const known = days.get(name)
    if (known === undefined) days.set(name, { of, sums: added })
    else known.sums = known.sums.map((sum, i) => sum + (added[i] ?? 0n))
  }
  const inOrder = [...days].sort(([a], [b]) => (a < b ? -1 : 1))
  return inOrder.map(([, { of, sums }]) => ADD_TO_DAY(...of, ...sums))
}

const READ_FLOORS = prepare`
  SELECT count(*) AS floors, coalesce(max(CASE WHEN endpoint = ${'text'} AND model = ${'text'} THEN 1 ELSE 0 END), 0) AS own
  FROM hold_floor WHERE budget_id = ${'text'} AND month = ${'text'}`

const RAISE_FLOOR = prepare`
  INSERT INTO hold_floor (budget_id, month, endpoint, model, nanos, list_nanos)
  VALUES (${'text'}, ${'text'}, ${'text'}, ${'text'}, ${'bigint'}, ${'bigint'})
  ON CONFLICT (budget_id, month, endpoint, model) DO UPDATE SET
    nanos = CASE WHEN excluded.nanos > hold_floor.nanos THEN excluded.nanos ELSE hold_floor.nanos END,
    list_nanos = CASE WHEN excluded.list_nanos > hold_floor.list_nanos THEN excluded.list_nanos
      ELSE hold_floor.list_nanos END`

const MARK_FLOORS = prepare`UPDATE budget SET has_floors = true WHERE id = ${'text'} AND month = ${'text'}`

/**
 * Raises the hold floors of calls that cost more than they held. Endpoints and models beyond the most that are kept for a
 * month share one floor.
 */
function* raiseFloors(bookings: readonly Booking[]): Batch<readonly Filled[]> {
  const over = bookings.filter(({ closing, call }) => isOverrun(closing, call) && call['endpoint'] !== null)
  if (over.length === 0) return []
  const pairOf = ({ call }: Booking) => [text(call, 'endpoint'), textOrNull(call, 'model_asked') ?? '']
  const rows = yield step(
    over.map((booking) => READ_FLOORS(...pairOf(booking), booking.budgetId, text(booking.call, 'month'))),
  )
  const made = new Map<string, Set<string>>()
  return over.flatMap((booking, n) => {
    const { budgetId, call, closing } = booking
    const month = text(call, 'month')
    const found = present(rows[n]?.[0])
    const name = pairOf(booking).join('\0')
    const ofMonth = made.get(`${budgetId} ${month}`) ?? new Set()
    made.set(`${budgetId} ${month}`, ofMonth)
    const hasOwn =
      number(found, 'own') > 0 ||
      ofMonth.has(name) ||
      number(found, 'floors') + ofMonth.size < limits.holdFloorsMax
    if (hasOwn && number(found, 'own') === 0) ofMonth.add(name)
    const pair = hasOwn ? pairOf(booking) : ['', '']
    return [
      RAISE_FLOOR(budgetId, month, ...pair, atMost(closing.costNanos), atMost(closing.listNanos)),
      MARK_FLOORS(budgetId, month),
    ]
  })
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}
