import assert from 'node:assert/strict'
import type { StoreUnderTest } from './fixtures.ts'
import { firstOf, lastMonthOf, monthKey, sumsOf, type World } from './simulation-world.ts'

/** Compares every budget, those of ended keys included, its surcharge, and every open call. */
export async function compareTables({ rows }: Pick<StoreUnderTest, 'rows'>, world: World): Promise<void> {
  const keyIdOf = (budgetId: unknown) => String(budgetId).replace(/^bud_/, 'key_')
  const budgets = (await rows('budget')).map((row) => [
    ...[keyIdOf(row['id']), row['month'], row['spent_nanos'], row['held_nanos'], row['lost_nanos']],
    row['overrun_nanos'],
  ])
  const firsts = [...world.keys.keys()].filter((id) => firstOf(world, id) === id)
  const expected = firsts.map((id) => {
    const month = lastMonthOf(world, id)
    const { spentNanos, heldNanos, lostNanos } = sumsOf(world, id, month)
    const overrunNanos = world.overruns.get(monthKey(id, month)) ?? 0n
    return [id, month, spentNanos, heldNanos, lostNanos, overrunNanos]
  })
  assert.deepEqual(budgets.toSorted(), expected.toSorted(), 'the budgets of all keys')

  assert.deepEqual(await readHolds(rows), holdsOf(world), 'the open calls')
}

export async function readHolds(rows: StoreUnderTest['rows']): Promise<unknown[][]> {
  const open = await rows('hold')
  return open.map((row) => [row['id'], row['hold_nanos'], row['hold_list_nanos']]).toSorted()
}

export function holdsOf({ calls }: World): unknown[][] {
  const open = [...calls.values()].filter((call) => call.state === 'in_flight')
  return open.map((call) => [call.id, call.holdNanos, call.holdListNanos]).toSorted()
}
