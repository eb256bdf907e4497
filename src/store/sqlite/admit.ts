import type { DatabaseSync } from 'node:sqlite'
import { dayOf, monthOf, nextMonthMs } from '../../ledger/calendar.ts'
import type { Admission, CallOpening, CallRefusal } from '../../ledger/call.ts'
import { decideAdmission, type Standing } from '../../ledger/decide-admission.ts'
import { modelsOf } from '../operations/keys.ts'
import type { BatchKeys, KeyRow } from './batch-keys.ts'
import type { AccountRow, BatchRows, MonthMoves } from './batch-rows.ts'
import type { HoldFloors } from './hold-floors.ts'
import type { OpenCalls } from './open-calls.ts'
import type { Operations } from './operations.ts'
import { integer, text } from './rows.ts'

/** Admission: the checks of a call and its hold, in the transaction of the batch that it came with. */
export function admitOperation(
  db: DatabaseSync,
  keys: BatchKeys,
  rows: BatchRows,
  openCalls: OpenCalls,
  floors: HoldFloors,
): Pick<Operations, 'admit'> {
  const selectBatchFile = db.prepare(
    'SELECT models FROM batch_file WHERE account_id = ? AND file_id = ? AND key_id = ?',
  )
  const insertCall = db.prepare(
    `INSERT INTO call (id, account_id, key_id, state, started_at_ms, month, day, method, path, endpoint, surface,
                       model_asked, hold_nanos, hold_list_nanos, price_version, rating, client_ip, user_agent)
     VALUES (?, ?, ?, 'in_flight', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )

  return {
    admit(opening) {
      const month = monthOf(opening.atMs)
      const key = keys.find(opening.digest, month)
      if (key === undefined) return refused({ reason: 'unknown_key' }, null)
      const [keyId, accountId] = key
      const account = rows.account(accountId)
      const moves = rows.month(keyId, month)
      const { balanceNanos } = account
      const decision = decideAdmission(opening, standingOf(key, account, moves, opening, month))
      // Who comes with a key that is not in force any more learns nothing of the account, and uses nothing.
      if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
      if (!opening.askedBefore && decision.kind !== 'admit') rows.used(keyId, opening.atMs)
      if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
      if (decision.kind === 'hold_back')
        return { kind: 'held', by: decision.by, keyId, accountId, balanceNanos }

      // After this point the call is admitted.
      const { holdNanos, holdListNanos } = decision
      const day = dayOf(opening.atMs)
      insertCall.run(
        opening.requestId,
        accountId,
        keyId,
        integer(opening.atMs),
        month,
        day,
        opening.method,
        opening.path,
        opening.endpoint,
        opening.surface,
        opening.modelAsked,
        holdNanos,
        holdListNanos,
        opening.priceVersion,
        opening.rating,
        opening.clientIp,
        opening.userAgent,
      )
      account.heldNanos += holdNanos
      account.movedHeldNanos += holdNanos
      moves.heldNanos += holdNanos
      const { modelAsked, endpoint } = opening
      openCalls.set(opening.requestId, {
        ...{ accountId, keyId, month, day, modelAsked, endpoint, holdNanos, holdListNanos },
      })
      return { kind: 'admitted', keyId, accountId, logRequests: key[6] === 1n, balanceNanos }
    },
  }

  function standingOf(
    key: KeyRow,
    account: AccountRow,
    moves: MonthMoves,
    { atMs, models, hold, endpoint, modelAsked }: CallOpening,
    month: string,
  ): Standing {
    const [keyId, accountId, expiresAtMs, revokedAtMs, capNanos, allowedModels, , spentNanos, heldNanos] = key
    const file =
      models.batchFile === null ? undefined : selectBatchFile.get(accountId, models.batchFile, keyId)
    return {
      accountId,
      revokedAtMs: revokedAtMs === null ? null : Number(revokedAtMs),
      expiresAtMs: expiresAtMs === null ? null : Number(expiresAtMs),
      allowedModels: modelsOf(allowedModels),
      batchModels: file === undefined ? null : modelsOf(text(file, 'models')),
      budget:
        capNanos === null
          ? null
          : {
              spentNanos: spentNanos + moves.spentNanos,
              heldNanos: heldNanos + moves.heldNanos,
              capNanos,
              resetsAtMs: nextMonthMs(atMs),
            },
      creditEnforced: account.creditEnforced,
      balanceNanos: account.balanceNanos,
      heldNanos: account.heldNanos,
      holdFloor:
        key[9] === 1n && hold.kind === 'bound' ? floors.find(keyId, month, endpoint, modelAsked) : null,
    }
  }
}

function isKeyRefusal({ reason }: CallRefusal): boolean {
  return reason === 'revoked_key' || reason === 'expired_key'
}

function refused(refusal: CallRefusal, balanceNanos: bigint | null): Admission {
  return { kind: 'refused', refusal, balanceNanos }
}
