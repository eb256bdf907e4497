import assert from 'node:assert/strict'
import { parseUsd } from '../../src/kernel/money.ts'
import type { Rows } from './read-database.ts'

export interface BudgetEvent {
  readonly period: 'month' | 'day'
  readonly percent: number
  readonly spentNanos: bigint
  readonly capNanos: bigint
  /** The month, or the day, of the budget. */
  readonly month: string
  readonly requestId: string | null
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

const exactUsd: Reviver = (name, value, { source }) =>
  name.endsWith('_usd') && typeof value === 'number' ? parseUsd(source ?? '') : value

/** The events of a key's budget in order, from the rows of `event`. */
export function budgetEvents(events: Rows, keyId: string): readonly BudgetEvent[] {
  return events
    .filter(({ type }) => String(type).startsWith('key.budget.'))
    .toSorted((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1))
    .map(({ type, data }) => {
      const of = JSON.parse(String(data), exactUsd as (name: string, value: unknown) => unknown)
      assert.equal(type, of.threshold_percent === 100 ? 'key.budget.exceeded' : 'key.budget.threshold')
      return of
    })
    .filter(({ key }) => key.id === keyId)
    .map((of) => ({
      ...{ period: of.period, percent: of.threshold_percent, spentNanos: of.spent_usd, capNanos: of.cap_usd },
      month: new Date(Date.parse(of.resets_at) - 1).toISOString().slice(0, of.period === 'month' ? 7 : 10),
      requestId: of.request_id,
    }))
}

/** Every crossing has a settled call whose cost crossed it, and none repeats within a cap and period. */
export function assertCrossings(crossings: readonly BudgetEvent[], calls: Rows): void {
  const byId = new Map(calls.map((call) => [call['id'], call]))
  for (const { percent, spentNanos, capNanos, requestId } of crossings) {
    // An edit of the cap crossed the threshold.
    if (requestId === null) {
      assert.ok(percent === 100 && spentNanos >= capNanos, `${percent} % of ${capNanos}, ${spentNanos} spent`)
      continue
    }
    const call = byId.get(requestId)
    assert.equal(call?.['state'], 'settled', `${percent} % of ${capNanos} was crossed by ${requestId}`)
    const threshold = capNanos * BigInt(percent)
    const before = spentNanos - BigInt(String(call?.['cost_nanos']))
    assert.ok(
      before * 100n < threshold && threshold <= spentNanos * 100n,
      `${requestId} crossed ${percent} %`,
    )
  }
  const names = crossings.map(({ percent, capNanos, month }) => `${percent} % of ${capNanos} in ${month}`)
  assert.equal(new Set(names).size, names.length, `recorded twice: ${names.sort().join(', ')}`)
}
