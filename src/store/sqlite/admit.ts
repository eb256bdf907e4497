import type { DatabaseSync } from 'node:sqlite'
import { dayOf, monthOf, nextMonthMs } from '../../ledger/calendar.ts'
import type { Admission, CallOpening, CallRefusal } from '../../ledger/call.ts'
import { decideAdmission, type Standing } from '../../ledger/decide-admission.ts'
import { modelsFromJson } from './key-record.ts'
import type { Operations } from './operations.ts'
import { integer, nanos, nanosOrNull, numberOrNull, present, type Row, text, textOrNull } from './rows.ts'

/** Admission: the checks of a call and its hold, in the transaction of the batch that it came with. */
export function admitOperation(db: DatabaseSync): Pick<Operations, 'admit'> {
  const selectKey = db.prepare(
    `SELECT k.id, k.account_id, k.expires_at_ms, k.revoked_at_ms, k.monthly_budget_nanos, k.allowed_models,
            k.log_requests, coalesce(m.spent_nanos, 0) AS spent_nanos, coalesce(m.held_nanos, 0) AS held_nanos
     FROM api_key k LEFT JOIN key_month m ON m.key_id = k.id AND m.month = ? WHERE k.digest = ?`,
  )
  const selectAccount = db.prepare(
    `SELECT id, credited_nanos - charged_nanos AS balance_nanos, held_nanos, credit_enforced
     FROM account WHERE id = ?`,
  )
  const selectBatchFile = db.prepare(
    'SELECT models FROM batch_file WHERE account_id = ? AND file_id = ? AND key_id = ?',
  )
  const markUsed = db.prepare(
    'UPDATE api_key SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?',
  )
  const insertCall = db.prepare(
    `INSERT INTO call (id, account_id, key_id, state, started_at_ms, month, day, method, path, surface, model_asked,
                       hold_nanos, hold_list_nanos, price_version, rating, client_ip, user_agent)
     VALUES (?, ?, ?, 'in_flight', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const holdOnAccount = db.prepare('UPDATE account SET held_nanos = held_nanos + ? WHERE id = ?')
  const holdOnMonth = db.prepare(
    `INSERT INTO key_month (key_id, month, held_nanos) VALUES (?, ?, ?)
     ON CONFLICT (key_id, month) DO UPDATE SET held_nanos = held_nanos + excluded.held_nanos`,
  )

  return {
    admit(opening) {
      const month = monthOf(opening.atMs)
      const key = selectKey.get(month, opening.digest)
      if (key === undefined) return refused({ reason: 'unknown_key' }, null)
      const keyId = text(key, 'id')
      const account = present(selectAccount.get(text(key, 'account_id')))
      const standing = standingOf(key, account, opening)
      const { accountId, balanceNanos } = standing
      const decision = decideAdmission(opening, standing)
      // Who comes with a key that is not in force any more learns nothing of the account, and uses nothing.
      if (decision.kind === 'refuse' && isKeyRefusal(decision.refusal)) return refused(decision.refusal, null)
      if (!opening.askedBefore || decision.kind === 'admit') markUsed.run(integer(opening.atMs), keyId)
      if (decision.kind === 'refuse') return refused(decision.refusal, balanceNanos)
      if (decision.kind === 'hold_back') return { kind: 'held', by: decision.by, accountId, balanceNanos }

      // After this point the call is admitted.
      const { holdNanos, holdListNanos } = decision
      insertCall.run(
        opening.requestId,
        accountId,
        keyId,
        integer(opening.atMs),
        month,
        dayOf(opening.atMs),
        opening.method,
        opening.path,
        opening.surface,
        opening.modelAsked,
        holdNanos,
        holdListNanos,
        opening.priceVersion,
        opening.rating,
        opening.clientIp,
        opening.userAgent,
      )
      if (holdNanos > 0n) {
        holdOnAccount.run(holdNanos, accountId)
        holdOnMonth.run(keyId, month, holdNanos)
      }
      return { kind: 'admitted', keyId, accountId, logRequests: key['log_requests'] === 1n, balanceNanos }
    },
  }

  function standingOf(key: Row, account: Row, { atMs, models }: CallOpening): Standing {
    const capNanos = nanosOrNull(key, 'monthly_budget_nanos')
    const accountId = text(account, 'id')
    const file =
      models.batchFile === null
        ? undefined
        : selectBatchFile.get(accountId, models.batchFile, text(key, 'id'))
    return {
      accountId,
      revokedAtMs: numberOrNull(key, 'revoked_at_ms'),
      expiresAtMs: numberOrNull(key, 'expires_at_ms'),
      allowedModels: modelsFromJson(textOrNull(key, 'allowed_models')),
      batchModels: file === undefined ? null : modelsFromJson(text(file, 'models')),
      budget:
        capNanos === null
          ? null
          : {
              spentNanos: nanos(key, 'spent_nanos'),
              heldNanos: nanos(key, 'held_nanos'),
              capNanos,
              resetsAtMs: nextMonthMs(atMs),
            },
      creditEnforced: account['credit_enforced'] === 1n,
      balanceNanos: nanos(account, 'balance_nanos'),
      heldNanos: nanos(account, 'held_nanos'),
    }
  }
}

function isKeyRefusal({ reason }: CallRefusal): boolean {
  return reason === 'revoked_key' || reason === 'expired_key'
}

function refused(refusal: CallRefusal, balanceNanos: bigint | null): Admission {
  return { kind: 'refused', refusal, balanceNanos }
}
