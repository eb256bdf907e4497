import type { Key } from '../../../src/api/key.ts'
import { nanosOf, nanosOfUsd, readInstant, usd } from './readings.ts'

export type How = 'raise' | 'set'

type Budgeted = Pick<Key, 'id' | 'budget_id' | 'monthly_budget_usd'>

interface Change<Of> {
  readonly key: Of
  readonly body: object
}

/** The changes of the keys. The keys of a rotation share a budget, which must be raised only once. */
export function bulkChanges<Of extends Budgeted>(
  keys: readonly Of[],
  how: How,
  amount: string,
  expires: string,
): readonly Change<Of>[] {
  const nanos = nanosOf(amount)
  const expiry = readInstant(expires)
  return keys.flatMap((key, i) => {
    const isFirst = keys.findIndex(({ budget_id }) => budget_id === key.budget_id) === i
    const before = key.monthly_budget_usd
    const isChanged = nanos !== null && isFirst && (how === 'set' || before !== null)
    const cap = how === 'set' || before === null ? 0n : nanosOfUsd(before)
    const body = {
      ...(isChanged ? { monthly_budget_usd: usd(cap + nanos) } : {}),
      ...('value' in expiry && expiry.value !== null ? { expires_at: expiry.value } : {}),
    }
    return Object.keys(body).length === 0 ? [] : [{ key, body }]
  })
}
