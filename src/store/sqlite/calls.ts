import type { DatabaseSync } from 'node:sqlite'
import { limits } from '../../kernel/limits.ts'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { CLOSING_COLUMNS } from '../../ledger/call-columns.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { callRecord, refusedRecord } from '../call-record.ts'
import { nanos, nanosOrNull, number, text, textOrNull } from '../rows.ts'
import type { BatchRows } from './batch-rows.ts'
import { bindersOf, flag, inArrays, integer } from './bind.ts'
import type { Operations } from './operations.ts'

/** The facts of a call's opening that settlement needs. */
export interface OpenCall {
  readonly accountId: string
  readonly keyId: string
  readonly month: string
  readonly day: string
  readonly modelAsked: string | null
  /** Null for a call from before endpoints were kept. */
  readonly endpoint: string | null
  readonly holdNanos: bigint
  readonly holdListNanos: bigint
  /** The number of requests that the call counts as in usage. */
  readonly requests: number
}

/**
 * The calls that were opened here and are still in flight, so that closing them need not read them back. The map is no
 * authority: the statement that closes a call says itself that the call must be in flight, and the row of a call that is
 * not, or that is not in this map, is read.
 */
export type OpenCalls = Map<string, OpenCall>

type CallOperations = Pick<Operations, 'settle' | 'getCall' | 'interruptOpenCalls'>

const CLOSING_BINDERS = bindersOf(CLOSING_COLUMNS)

/** Settlement: every statement that closes a call is in this file; the sums that it moves are in batch-rows.ts. */
export function callOperations(db: DatabaseSync, rows: BatchRows, openCalls: OpenCalls): CallOperations {
  const selectCall = db.prepare('SELECT * FROM call WHERE id = ?')
  const selectRefused = db.prepare('SELECT * FROM refused_call WHERE id = ?')
  const selectOpening = db.prepare(
    `SELECT account_id, key_id, state, month, day, model_asked, endpoint, hold_nanos, hold_list_nanos, lost_list_nanos,
            balance_nanos, requests
     FROM call WHERE id = ?`,
  )
  // The state is the guard of the whole settlement: a call that is closed already is not closed again.
  const closeCall = db.prepare(
    `UPDATE call SET state = ?, ended_at_ms = ?, overrun = ?, lost_list_nanos = ?, balance_nanos = ?,
       ${CLOSING_COLUMNS.map(({ column }) => `${column} = ?`).join(', ')}
     WHERE id = ? AND state = ?`,
  )
  const selectOpen = db.prepare(
    `SELECT id, account_id, key_id, month, hold_nanos, hold_list_nanos FROM call
     WHERE state = 'in_flight' AND object_id IS NULL AND parent_id IS NULL`,
  )
  const interruptCall = db.prepare(
    `UPDATE call SET state = 'interrupted', ended_at_ms = ?, cost_nanos = 0, list_nanos = 0, lost_list_nanos = ?
     WHERE id = ?`,
  )
  const raiseFloor = prepareRaiseFloor(db)

  return {
    settle(closing) {
      const open = openCalls.get(closing.requestId)
      openCalls.delete(closing.requestId)
      if (open !== undefined) {
        const balanceNanos = book(closing, open, 'in_flight', 0n)
        if (balanceNanos !== null) return { balanceNanos, booked: true }
      }
      return settleFromRow(closing)
    },

    getCall(requestId) {
      const row = selectCall.get(requestId)
      if (row !== undefined) return callRecord(row)
      const refused = selectRefused.get(requestId)
      return refused === undefined ? null : refusedRecord(refused)
    },

    interruptOpenCalls(atMs) {
      const open = selectOpen.all()
      for (const call of open) {
        const holdNanos = nanos(call, 'hold_nanos')
        const lostNanos = nanos(call, 'hold_list_nanos')
        interruptCall.run(integer(atMs), lostNanos, text(call, 'id'))
        move(text(call, 'account_id'), text(call, 'key_id'), text(call, 'month'), {
          heldNanos: -holdNanos,
          costNanos: 0n,
          lostNanos,
        })
      }
      openCalls.clear()
      return open.length
    },
  }

  function settleFromRow(closing: CallClosing): Settled {
    const call = selectOpening.get(closing.requestId)
    if (call === undefined) throw new Error(`there is no call ${closing.requestId} to settle`)
    const state = text(call, 'state')
    // An interrupted call whose cost becomes known is booked; interrupting it a second time would change nothing.
    if (state !== 'in_flight' && (state !== 'interrupted' || closing.state === 'interrupted')) {
      const { balanceNanos } = rows.account(text(call, 'account_id'))
      return { balanceNanos: nanosOrNull(call, 'balance_nanos') ?? balanceNanos, booked: false }
    }
    const opened: OpenCall = {
      accountId: text(call, 'account_id'),
      keyId: text(call, 'key_id'),
      month: text(call, 'month'),
      day: text(call, 'day'),
      modelAsked: textOrNull(call, 'model_asked'),
      endpoint: textOrNull(call, 'endpoint'),
      holdNanos: nanos(call, 'hold_nanos'),
      holdListNanos: nanos(call, 'hold_list_nanos'),
      requests: number(call, 'requests'),
    }
    const balanceNanos = book(closing, opened, state, nanos(call, 'lost_list_nanos'))
    if (balanceNanos === null) throw new Error(`call ${closing.requestId} is not ${state} any more`)
    return { balanceNanos, booked: true }
  }

  /** Books the closing, unless the call is not in this state: then nothing is done, and the answer is null. */
  function book(closing: CallClosing, call: OpenCall, state: string, wasLostNanos: bigint): bigint | null {
    const { accountId, keyId, month, holdNanos } = call
    const { costNanos } = closing
    const balanceNanos = rows.account(accountId).balanceNanos - costNanos
    const overrun = holdNanos < costNanos
    const lostNanos = closing.state === 'interrupted' ? call.holdListNanos : 0n
    const { changes } = closeCall.run(
      closing.state,
      integer(closing.atMs),
      flag(overrun),
      lostNanos,
      balanceNanos,
      ...CLOSING_BINDERS.map((binder) => binder(closing)),
      closing.requestId,
      state,
    )
    if (Number(changes) !== 1) return null
    // After this point the closing is booked. An interrupted call has given its hold back already.
    const heldNanos = state === 'in_flight' ? -holdNanos : 0n
    move(accountId, keyId, month, { heldNanos, costNanos, lostNanos: lostNanos - wasLostNanos })
    if (rows.account(accountId).isTold) tell(closing, call)
    if (overrun && raiseFloor(call, closing)) rows.forgetKeys()
    if (closing.state === 'settled' && call.requests > 0) {
      const model = closing.modelServed ?? call.modelAsked ?? ''
      rows.count(closing, call.requests, accountId, call.day, model, keyId)
    }
    return balanceNanos
  }

  /** Tells of a booked call whose account has an endpoint that is enabled. */
  function tell(
    { requestId, costNanos, atMs, state, unpriced, modelServed }: CallClosing,
    call: OpenCall,
  ): void {
    const { accountId, keyId, month, day } = call
    const account = rows.account(accountId)
    const { balanceNanos, heldNanos } = account
    if (unpriced && state === 'settled')
      rows.tell.unpriced(accountId, day, modelServed ?? call.modelAsked ?? '', requestId, atMs)
    if (costNanos === 0n) return
    const moves = rows.month(keyId, month)
    moves.told ??= { accountId, calls: [] }
    moves.told.calls.push({ requestId, costNanos, atMs })
    if (account.creditEnforced) rows.tell.balance(accountId, balanceNanos, costNanos, heldNanos, atMs)
  }

  function move(
    accountId: string,
    keyId: string,
    month: string,
    by: { readonly heldNanos: bigint; readonly costNanos: bigint; readonly lostNanos: bigint },
  ): void {
    const account = rows.account(accountId)
    account.balanceNanos -= by.costNanos
    account.heldNanos += by.heldNanos
    account.movedChargedNanos += by.costNanos
    account.movedHeldNanos += by.heldNanos
    const moves = rows.month(keyId, month)
    moves.heldNanos += by.heldNanos
    moves.spentNanos += by.costNanos
    moves.lostNanos += by.lostNanos
  }
}

/**
 * Raises the hold floor of a key's month after a call that cost more than it held. False where there is nothing to raise: a
 * call from before endpoints were kept has no floor.
 */
function prepareRaiseFloor(db: DatabaseSync): (call: OpenCall, closing: CallClosing) => boolean {
  const selectOwn = db.prepare(
    'SELECT 1 FROM hold_floor WHERE key_id = ? AND month = ? AND endpoint = ? AND model = ?',
  )
  const count = inArrays(db.prepare('SELECT count(*) FROM hold_floor WHERE key_id = ? AND month = ?'))
  const raise = db.prepare(
    `INSERT INTO hold_floor (key_id, month, endpoint, model, nanos, list_nanos) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET nanos = max(nanos, excluded.nanos), list_nanos = max(list_nanos, excluded.list_nanos)`,
  )
  const markMonth = db.prepare(
    `INSERT INTO key_month (key_id, month, has_floors) VALUES (?, ?, 1)
     ON CONFLICT (key_id, month) DO UPDATE SET has_floors = 1`,
  )

  function mayHaveOwn(keyId: string, month: string, endpoint: string, model: string): boolean {
    if (selectOwn.get(keyId, month, endpoint, model) !== undefined) return true
    const [rows] = count.get(keyId, month) as unknown as readonly [bigint]
    return rows < limits.holdFloorsMax
  }

  return ({ keyId, month, endpoint, modelAsked }, { costNanos, listNanos }) => {
    if (endpoint === null) return false
    const model = modelAsked ?? ''
    const pair = mayHaveOwn(keyId, month, endpoint, model) ? [endpoint, model] : ['', '']
    raise.run(keyId, month, ...pair, atMost(costNanos), atMost(listNanos))
    markMonth.run(keyId, month)
    return true
  }
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}
