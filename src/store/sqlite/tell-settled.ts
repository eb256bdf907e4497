import type { DatabaseSync } from 'node:sqlite'
import { DEFAULT_THRESHOLDS, limits } from '../../kernel/limits.ts'
import type { WebhookEventType } from '../../kernel/vocabulary.ts'
import { budgetCrossings, CAP_PERCENT, type SpentCall } from '../../ledger/budget-crossings.ts'
import {
  BALANCE_LOW,
  BUDGET_THRESHOLDS,
  exceededMark,
  keptBalance,
  lowMark,
  MARK_MS,
  type OutboxFacts,
  unpricedMarks,
} from '../operations/outbox.ts'
import { inArrays, integer } from './bind.ts'

/** A key's month after a batch of calls, of an account that has an endpoint which is enabled. */
export interface SettledMonth {
  readonly accountId: string
  readonly keyId: string
  readonly month: string
  readonly spentNanos: bigint
  readonly heldNanos: bigint
  /** The calls that cost something, in the order in which they were booked. */
  readonly calls: readonly SpentCall[]
}

/** The events of a settlement, written in its transaction, only where the account has an endpoint that is enabled. */
export interface TellSettled {
  month(settled: SettledMonth): void
  /** The balance after a call of this cost, where credit counts. */
  balance(accountId: string, balanceNanos: bigint, costNanos: bigint, heldNanos: bigint, atMs: number): void
  unpriced(accountId: string, day: string, model: string, requestId: string, atMs: number): void
  /** The batch is over: settings that were read for it may change. */
  forget(): void
}

export function prepareTellSettled(db: DatabaseSync): TellSettled {
  const insert = db.prepare(
    'INSERT INTO webhook_outbox (account_id, type, key_id, at_ms, facts) VALUES (?, ?, ?, ?, ?)',
  )
  const insertMark = db.prepare('INSERT OR IGNORE INTO webhook_mark (name, until_ms) VALUES (?, ?)')
  const countMarks = inArrays(db.prepare('SELECT count(*) FROM webhook_mark WHERE name >= ? AND name < ?'))
  const selectCap = inArrays(db.prepare('SELECT monthly_budget_nanos FROM api_key WHERE id = ?'))
  const selectCredited = inArrays(db.prepare('SELECT credited_nanos FROM account WHERE id = ?'))
  const selectSetting = inArrays(db.prepare('SELECT value FROM setting WHERE name = ?'))

  function tell(
    accountId: string,
    type: WebhookEventType,
    keyId: string | null,
    atMs: number,
    facts: OutboxFacts,
  ): void {
    insert.run(accountId, type, keyId, integer(atMs), JSON.stringify(facts))
  }

  const mark = (name: string, atMs: number): boolean =>
    Number(insertMark.run(name, integer(atMs + MARK_MS)).changes) === 1

  function setting(name: string): string | undefined {
    const [value] = (selectSetting.get(name) ?? []) as unknown as readonly [string?]
    return value
  }

  /** The setting is read once for a batch, because each call of the batch may ask: one read takes 4 µs. */
  let low: { readonly nanos: bigint | null } | null = null
  function lowNanos(): bigint | null {
    const value = low === null ? setting(BALANCE_LOW) : undefined
    low ??= { nanos: value === undefined ? null : BigInt(value) }
    return low.nanos
  }

  function thresholds(): readonly number[] {
    const value = setting(BUDGET_THRESHOLDS)
    return value === undefined ? DEFAULT_THRESHOLDS : (JSON.parse(value) as number[])
  }

  return {
    month({ accountId, keyId, month, spentNanos, heldNanos, calls }) {
      const [capNanos] = selectCap.get(keyId) as unknown as readonly [bigint | null]
      if (capNanos === null) return
      const before = calls.reduce((spent, { costNanos }) => spent - costNanos, spentNanos)
      for (const { percent, call, spentNanos: spent } of budgetCrossings(
        capNanos,
        before,
        calls,
        thresholds(),
      )) {
        const isCap = percent === CAP_PERCENT
        // An edit that brings this very cap back must not tell its crossing again.
        if (isCap) mark(exceededMark(keyId, month, capNanos), call.atMs)
        tell(accountId, isCap ? 'key.budget.exceeded' : 'key.budget.threshold', keyId, call.atMs, {
          budget: {
            ...{ percent, spent: String(spent), held: String(heldNanos), cap: String(capNanos) },
            ...{ month, requestId: call.requestId },
          },
        })
      }
    },

    balance(accountId, balanceNanos, costNanos, heldNanos, atMs) {
      const lowAt = lowNanos()
      const passes = (nanos: bigint) => balanceNanos < nanos && nanos <= balanceNanos + costNanos
      const isLow = lowAt !== null && passes(lowAt)
      // Amounts are whole nanodollars: a balance below 1 is exhausted.
      const isExhausted = passes(1n)
      if (!isLow && !isExhausted) return
      if (lowAt !== null) insertMark.run(lowMark(accountId), null)
      const [creditedNanos] = selectCredited.get(accountId) as unknown as readonly [bigint]
      const chargedNanos = creditedNanos - balanceNanos
      const balance = keptBalance({ creditedNanos, chargedNanos, heldNanos, enforced: true })
      if (isLow) tell(accountId, 'balance.low', null, atMs, { balance })
      if (isExhausted) tell(accountId, 'balance.exhausted', null, atMs, { balance })
    },

    unpriced(accountId, day, model, requestId, atMs) {
      const marks = unpricedMarks(accountId, day)
      const [told] = countMarks.get(marks, `${marks}\u{10ffff}`) as unknown as readonly [bigint]
      if (told >= limits.webhookUnpricedModelsMax || !mark(marks + model, atMs)) return
      tell(accountId, 'call.unpriced', null, atMs, { model: model === '' ? null : model, requestId })
    },

    forget() {
      low = null
    },
  }
}
