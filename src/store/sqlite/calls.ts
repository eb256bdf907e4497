import type { DatabaseSync } from 'node:sqlite'
import type { CallClosing, Settled } from '../../ledger/call.ts'
import { refusedRecord } from '../refused-record.ts'
import type { BatchRows } from './batch-rows.ts'
import { callRecord } from './call-record.ts'
import type { HoldFloors } from './hold-floors.ts'
import type { OpenCall, OpenCalls } from './open-calls.ts'
import type { Operations } from './operations.ts'
import { flag, integer, integerOrNull, nanos, nanosOrNull, text, textOrNull } from './rows.ts'

type CallOperations = Pick<Operations, 'settle' | 'getCall' | 'interruptOpenCalls'>

/** Settlement: every statement that closes a call is in this file; the sums that it moves are in batch-rows.ts. */
export function callOperations(
  db: DatabaseSync,
  rows: BatchRows,
  openCalls: OpenCalls,
  floors: HoldFloors,
): CallOperations {
  const selectCall = db.prepare('SELECT * FROM call WHERE id = ?')
  const selectRefused = db.prepare('SELECT * FROM refused_call WHERE id = ?')
  const selectOpening = db.prepare(
    `SELECT account_id, key_id, state, month, day, model_asked, endpoint, hold_nanos, hold_list_nanos, lost_list_nanos,
            balance_nanos
     FROM call WHERE id = ?`,
  )
  // The state is the guard of the whole settlement: a call that is closed already is not closed again.
  const closeCall = db.prepare(
    `UPDATE call SET state = ?, ended_at_ms = ?, status = ?, model_served = ?, stop_reason = ?, streamed = ?,
       estimated = ?, unpriced = ?, overrun = ?, priced_as_requested = ?, usage = ?, input_tokens = ?,
       output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, cost_nanos = ?, list_nanos = ?,
       lost_list_nanos = ?, balance_nanos = ?, upstream_ms = ?, overhead_ms = ?, upstream_request_id = ?,
       bytes_in = ?, bytes_out = ?
     WHERE id = ? AND state = ?`,
  )
  const selectOpen = db.prepare(
    "SELECT id, account_id, key_id, month, hold_nanos, hold_list_nanos FROM call WHERE state = 'in_flight'",
  )
  const interruptCall = db.prepare(
    `UPDATE call SET state = 'interrupted', ended_at_ms = ?, cost_nanos = 0, list_nanos = 0, lost_list_nanos = ?
     WHERE id = ?`,
  )

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
    // An interrupted call that turns out to be known is booked; that it is lost was known before.
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
    }
    const balanceNanos = book(closing, opened, state, nanos(call, 'lost_list_nanos'))
    if (balanceNanos === null) throw new Error(`call ${closing.requestId} is not ${state} any more`)
    return { balanceNanos, booked: true }
  }

  /** Books the closing, unless the call is not in this state: then nothing is done, and the answer is null. */
  function book(closing: CallClosing, call: OpenCall, state: string, wasLostNanos: bigint): bigint | null {
    const { accountId, keyId, month, holdNanos } = call
    const account = rows.account(accountId)
    const balanceNanos = account.balanceNanos - closing.costNanos
    const overrun = holdNanos < closing.costNanos
    const lostNanos = closing.state === 'interrupted' ? call.holdListNanos : 0n
    if (!writeClosing(closing, overrun, lostNanos, balanceNanos, state)) return null
    // After this point the closing is booked. An interrupted call has given its hold back already.
    const heldNanos = state === 'in_flight' ? -holdNanos : 0n
    move(accountId, keyId, month, {
      heldNanos,
      costNanos: closing.costNanos,
      lostNanos: lostNanos - wasLostNanos,
    })
    if (overrun) floors.raise(call, closing)
    if (closing.state === 'settled') {
      const model = closing.modelServed ?? call.modelAsked ?? ''
      rows.count(closing, accountId, call.day, model, keyId)
    }
    return balanceNanos
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

  /** Whether the call was in that state. */
  function writeClosing(
    closing: CallClosing,
    overrun: boolean,
    lostNanos: bigint,
    balanceNanos: bigint,
    state: string,
  ): boolean {
    const { tokens } = closing
    const { changes } = closeCall.run(
      closing.state,
      integer(closing.atMs),
      integerOrNull(closing.status),
      closing.modelServed,
      closing.stopReason,
      flag(closing.streamed),
      flag(closing.estimated),
      flag(closing.unpriced),
      flag(overrun),
      flag(closing.pricedAsRequested),
      closing.usage,
      integer(tokens.input),
      integer(tokens.output),
      integer(tokens.cacheRead),
      integer(tokens.cacheWrite),
      closing.costNanos,
      closing.listNanos,
      lostNanos,
      balanceNanos,
      integerOrNull(closing.upstreamMs),
      integer(closing.overheadMs),
      closing.upstreamRequestId,
      integer(closing.bytesIn),
      integer(closing.bytesOut),
      closing.requestId,
      state,
    )
    return Number(changes) === 1
  }
}
