import type { DatabaseSync } from 'node:sqlite'
import type { CallClosing } from '../../ledger/call.ts'
import { callRecord } from './call-record.ts'
import type { Operations } from './operations.ts'
import { flag, integer, integerOrNull, nanos, nanosOrNull, present, text, textOrNull } from './rows.ts'

type CallOperations = Pick<Operations, 'settle' | 'getCall' | 'interruptOpenCalls'>

/** Settlement: every statement that closes a hold or books the charge of a call is in this file. */
export function callOperations(db: DatabaseSync): CallOperations {
  const moveAccount = db.prepare(
    `UPDATE account SET held_nanos = held_nanos + ?, charged_nanos = charged_nanos + ? WHERE id = ?
     RETURNING credited_nanos - charged_nanos AS balance_nanos`,
  )
  const moveMonth = db.prepare(
    `INSERT INTO key_month (key_id, month, held_nanos, spent_nanos, lost_nanos) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = held_nanos + excluded.held_nanos,
       spent_nanos = spent_nanos + excluded.spent_nanos, lost_nanos = lost_nanos + excluded.lost_nanos`,
  )
  const selectCall = db.prepare('SELECT * FROM call WHERE id = ?')
  const selectOpening = db.prepare(
    `SELECT account_id, key_id, state, month, day, model_asked, hold_nanos, lost_list_nanos, balance_nanos
     FROM call WHERE id = ?`,
  )
  const closeCall = db.prepare(
    `UPDATE call SET state = ?, ended_at_ms = ?, status = ?, model_served = ?, stop_reason = ?, streamed = ?,
       estimated = ?, unpriced = ?, overrun = ?, priced_as_requested = ?, usage = ?, input_tokens = ?,
       output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?, cost_nanos = ?, list_nanos = ?,
       lost_list_nanos = 0, balance_nanos = ?, upstream_ms = ?, overhead_ms = ?, upstream_request_id = ?,
       bytes_in = ?, bytes_out = ?
     WHERE id = ?`,
  )
  const addRollup = db.prepare(
    `INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cache_read_tokens,
                         cache_write_tokens, cost_nanos, list_nanos, unpriced_requests, estimated_requests)
     VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET requests = requests + 1,
       input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
       cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
       cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
       cost_nanos = cost_nanos + excluded.cost_nanos, list_nanos = list_nanos + excluded.list_nanos,
       unpriced_requests = unpriced_requests + excluded.unpriced_requests,
       estimated_requests = estimated_requests + excluded.estimated_requests`,
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
      const call = selectOpening.get(closing.requestId)
      if (call === undefined) throw new Error(`there is no call ${closing.requestId} to settle`)
      const state = text(call, 'state')
      if (state === 'settled' || state === 'released') {
        return { balanceNanos: nanosOrNull(call, 'balance_nanos') ?? 0n, booked: false }
      }

      // After this point the closing is booked. An interrupted call has given its hold back already.
      const accountId = text(call, 'account_id')
      const keyId = text(call, 'key_id')
      const heldNanos = state === 'in_flight' ? nanos(call, 'hold_nanos') : 0n
      const lostNanos = nanos(call, 'lost_list_nanos')
      const account = present(moveAccount.get(-heldNanos, closing.costNanos, accountId))
      const balanceNanos = nanos(account, 'balance_nanos')
      if (heldNanos > 0n || lostNanos > 0n || closing.costNanos > 0n) {
        moveMonth.run(keyId, text(call, 'month'), -heldNanos, closing.costNanos, -lostNanos)
      }
      writeClosing(closing, nanos(call, 'hold_nanos') < closing.costNanos, balanceNanos)
      if (closing.state === 'settled') {
        const model = closing.modelServed ?? textOrNull(call, 'model_asked') ?? ''
        addToRollup(closing, accountId, text(call, 'day'), model, keyId)
      }
      return { balanceNanos, booked: true }
    },

    getCall(requestId) {
      const row = selectCall.get(requestId)
      return row === undefined ? null : callRecord(row)
    },

    interruptOpenCalls(atMs) {
      const open = selectOpen.all()
      for (const call of open) {
        const holdNanos = nanos(call, 'hold_nanos')
        const lostNanos = nanos(call, 'hold_list_nanos')
        interruptCall.run(integer(atMs), lostNanos, text(call, 'id'))
        moveAccount.run(-holdNanos, 0n, text(call, 'account_id'))
        moveMonth.run(text(call, 'key_id'), text(call, 'month'), -holdNanos, 0n, lostNanos)
      }
      return open.length
    },
  }

  function writeClosing(closing: CallClosing, overrun: boolean, balanceNanos: bigint): void {
    const { tokens } = closing
    closeCall.run(
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
      balanceNanos,
      integerOrNull(closing.upstreamMs),
      integer(closing.overheadMs),
      closing.upstreamRequestId,
      integer(closing.bytesIn),
      integer(closing.bytesOut),
      closing.requestId,
    )
  }

  function addToRollup(
    closing: CallClosing,
    accountId: string,
    day: string,
    model: string,
    keyId: string,
  ): void {
    const { tokens } = closing
    addRollup.run(
      accountId,
      day,
      model,
      keyId,
      integer(tokens.input),
      integer(tokens.output),
      integer(tokens.cacheRead),
      integer(tokens.cacheWrite),
      closing.costNanos,
      closing.listNanos,
      flag(closing.unpriced),
      flag(closing.estimated),
    )
  }
}
