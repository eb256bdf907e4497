import type { DatabaseSync } from 'node:sqlite'
import type { KeyMeans } from '../../keys/credential.ts'
import { keyStatus } from '../../keys/key-store.ts'
import { dayOf, monthOf, nextMonthMs } from '../../ledger/calendar.ts'
import {
  type Admission,
  type CallOpening,
  type CallRefusal,
  type HoldFloor,
  requestsOf,
} from '../../ledger/call.ts'
import { OPENING_COLUMNS } from '../../ledger/call-columns.ts'
import { decideAdmission, type KeyState } from '../../ledger/decide-admission.ts'
import { modelsOf } from '../operations/keys.ts'
import { bool, nanos, nanosOrNull, numberOrNull, type Row, text } from '../rows.ts'
import type { AccountRow, BatchRows, KeyRow, MonthMoves } from './batch-rows.ts'
import { bindersOf, inArrays, integer } from './bind.ts'
import type { OpenCalls } from './calls.ts'
import type { Operations } from './operations.ts'

const OPENING_BINDERS = bindersOf(OPENING_COLUMNS)

/** Admission: the checks of a call and its hold, in the transaction of the batch that it came with. */
export function admitOperation(
  db: DatabaseSync,
  rows: BatchRows,
  openCalls: OpenCalls,
): Pick<Operations, 'admit'> {
  const selectBatchFile = db.prepare(
    'SELECT models FROM batch_file WHERE account_id = ? AND file_id = ? AND key_id = ?',
  )
  const selectFloor = inArrays(
    db.prepare(
      `SELECT max(nanos), max(list_nanos) FROM hold_floor
       WHERE key_id = ? AND month = ? AND ((endpoint = ? AND model = ?) OR (endpoint = '' AND model = ''))`,
    ),
  )
  const insertCall = db.prepare(
    `INSERT INTO call (account_id, key_id, state, started_at_ms, month, day, hold_nanos, hold_list_nanos, requests,
       ${OPENING_COLUMNS.map(({ column }) => column).join(', ')})
     VALUES (?, ?, 'in_flight', ?, ?, ?, ?, ?, ?, ${OPENING_COLUMNS.map(() => '?').join(', ')})`,
  )

  return {
    admit(opening) {
      const month = monthOf(opening.atMs)
      const key = rows.key(opening.digest, month)
      if (key === undefined) return refused({ reason: 'unknown_key' }, null)
      const [keyId, accountId, , , , , , , logRequests] = key
      const account = rows.account(accountId)
      const moves = rows.month(keyId, month)
      const { balanceNanos } = account
      const decision = decideAdmission(opening, standingOf(key, account, moves, opening, month))
      // The holder of a key that is not in force any more learns nothing of the account, and uses nothing.
      if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
      if (!opening.askedBefore && decision.kind !== 'admit') rows.used(keyId, opening.atMs)
      if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
      if (decision.kind === 'wait') return { kind: 'held', by: decision.by, keyId, accountId, balanceNanos }

      // After this point the call is admitted.
      const { holdNanos, holdListNanos } = decision
      const day = dayOf(opening.atMs)
      const requests = requestsOf(opening)
      insertCall.run(
        accountId,
        keyId,
        integer(opening.atMs),
        month,
        day,
        holdNanos,
        holdListNanos,
        integer(requests),
        ...OPENING_BINDERS.map((binder) => binder(opening)),
      )
      account.heldNanos += holdNanos
      account.movedHeldNanos += holdNanos
      moves.heldNanos += holdNanos
      const { modelAsked, endpoint } = opening
      const open = {
        accountId,
        keyId,
        month,
        day,
        modelAsked,
        endpoint,
        holdNanos,
        holdListNanos,
        requests,
      }
      openCalls.set(opening.requestId, open)
      return { kind: 'admitted', keyId, accountId, logRequests: logRequests === 1n, balanceNanos }
    },
  }

  function standingOf(
    key: KeyRow,
    account: AccountRow,
    moves: MonthMoves,
    { atMs, models, hold, endpoint, modelAsked }: CallOpening,
    month: string,
  ): KeyState {
    const [keyId, accountId, revokedAtMs, spentNanos, heldNanos, hasFloors] = key
    const [, , , , , , capNanos, allowedModels, , expiresAtMs] = key
    const file =
      models.batchFile === null ? undefined : selectBatchFile.get(accountId, models.batchFile, keyId)
    return {
      accountId,
      revokedAtMs: revokedAtMs === null ? null : Number(revokedAtMs),
      expiresAtMs: expiresAtMs === null ? null : Number(expiresAtMs),
      allowedModels: modelsOf(allowedModels),
      batchModels: file === undefined ? null : modelsOf(file['models']),
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
      // Nearly all months have no hold floor to look up.
      holdFloor:
        hasFloors === 1n && hold.kind === 'bound' ? findFloor(keyId, month, endpoint, modelAsked) : null,
    }
  }

  function findFloor(keyId: string, month: string, endpoint: string, model: string | null): HoldFloor | null {
    const row = selectFloor.get(keyId, month, endpoint, model ?? '') as unknown as (bigint | null)[]
    const [nanos = null, listNanos = null] = row
    return nanos === null || listNanos === null ? null : { nanos, listNanos }
  }
}

function isKeyRefusal({ reason }: CallRefusal): boolean {
  return reason === 'revoked_key' || reason === 'expired_key'
}

function refused(refusal: CallRefusal, balanceNanos: bigint | null): Admission {
  return { kind: 'refused', refusal, balanceNanos }
}

/**
 * Looks up a key before a large body is taken in. The look-up writes nothing itself, so that it does not wait for the disk:
 * the use of the key goes with the next write.
 */
export function lookUpKeyOperation(
  db: DatabaseSync,
  noteUse: (keyId: string, atMs: number) => void,
): Pick<Operations, 'lookUpKey'> {
  const selectKey = db.prepare(
    `SELECT k.id, k.account_id, k.expires_at_ms, k.revoked_at_ms, k.monthly_budget_nanos,
            coalesce(m.spent_nanos, 0) AS spent_nanos, coalesce(m.held_nanos, 0) AS held_nanos,
            a.credit_enforced, a.credited_nanos - a.charged_nanos AS balance_nanos
     FROM api_key k JOIN account a ON a.id = k.account_id
     LEFT JOIN key_month m ON m.key_id = k.id AND m.month = ? WHERE k.digest = ?`,
  )
  const selectAdmin = db.prepare('SELECT id, account_id, revoked_at_ms FROM admin_key WHERE digest = ?')

  return {
    lookUpKey(digest, atMs) {
      const key = selectKey.get(monthOf(atMs), digest)
      if (key !== undefined) {
        const status = keyStatus(
          {
            revokedAtMs: numberOrNull(key, 'revoked_at_ms'),
            expiresAtMs: numberOrNull(key, 'expires_at_ms'),
          },
          atMs,
        )
        if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
        const keyId = text(key, 'id')
        noteUse(keyId, atMs)
        return { kind: 'api_key', keyId, accountId: text(key, 'account_id'), means: meansOf(key) }
      }
      const admin = selectAdmin.get(digest)
      if (admin === undefined) return { kind: 'refused', reason: 'unknown_key' }
      if (admin['revoked_at_ms'] !== null) return { kind: 'refused', reason: 'revoked_key' }
      return { kind: 'admin_key', keyId: text(admin, 'id'), accountId: text(admin, 'account_id') }
    },
  }
}

/** The means of a key, without the moves of the calls of this batch: no decision depends on them. */
function meansOf(key: Row): KeyMeans {
  return {
    capNanos: nanosOrNull(key, 'monthly_budget_nanos'),
    spentNanos: nanos(key, 'spent_nanos'),
    heldNanos: nanos(key, 'held_nanos'),
    creditEnforced: bool(key, 'credit_enforced'),
    balanceNanos: nanos(key, 'balance_nanos'),
  }
}
