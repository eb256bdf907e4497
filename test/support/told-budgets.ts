import assert from 'node:assert/strict'
import type { KeptBudget } from '../../src/store/operations/outbox.ts'
import type { Rows } from './books.ts'

/**
 * A webhook written past the API, of whose events no node makes deliveries: the lease of the relay is held for ever, so
 * that all events stay in the outbox.
 */
export const keepAllEvents = (store: 'sqlite' | 'postgres'): string => `
  INSERT INTO webhook (id, account_id, url, events, description, format, created_at_ms, since_ms, secret)
  VALUES ('wh_watch', 'default', 'https://hooks.invalid', '["*"]', '', 'standard', 0, 0, ${store === 'sqlite' ? "x''" : "''"});
  INSERT INTO webhook_lease (name, holder, until_ms) VALUES ('relay', 'a test', 9000000000000000)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms`

/** The events of the outbox about the budget of a key, in their order. */
export function toldBudgets(outbox: Rows, keyId: string): readonly KeptBudget[] {
  const rows = outbox.filter(
    (row) => row['key_id'] === keyId && String(row['type']).startsWith('key.budget.'),
  )
  return rows
    .toSorted((a, b) => Number(a['sequence']) - Number(b['sequence']))
    .map(({ facts, type }) => {
      const told = (typeof facts === 'string' ? JSON.parse(facts) : facts) as { budget: KeptBudget }
      assert.equal(type, told.budget.percent === 100 ? 'key.budget.exceeded' : 'key.budget.threshold')
      return told.budget
    })
}

/** Every crossing is by a settled call whose cost crossed the mark, and no crossing of a cap and month is told twice. */
export function assertTold(told: readonly KeptBudget[], calls: Rows): void {
  const byId = new Map(calls.map((call) => [call['id'], call]))
  for (const { percent, spent, cap, requestId } of told) {
    // The crossing was by an edit of the cap.
    if (requestId === null) {
      assert.ok(percent === 100 && BigInt(spent) >= BigInt(cap), `${percent} % of ${cap}, ${spent} spent`)
      continue
    }
    const call = byId.get(requestId)
    assert.equal(call?.['state'], 'settled', `${percent} % of ${cap} was crossed by ${requestId}`)
    const threshold = BigInt(cap) * BigInt(percent)
    const before = BigInt(spent) - BigInt(String(call?.['cost_nanos']))
    assert.ok(
      before * 100n < threshold && threshold <= BigInt(spent) * 100n,
      `${requestId} crossed ${percent} %`,
    )
  }
  const crossed = told.map(({ percent, cap, month }) => `${percent} % of ${cap} in ${month}`)
  assert.equal(new Set(crossed).size, crossed.length, `told twice: ${crossed.sort().join(', ')}`)
}
