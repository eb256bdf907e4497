import assert from 'node:assert/strict'
import type { StoreUnderTest } from './fixtures.ts'
import { monthKey, type World } from './simulation-world.ts'

/** Compares every month of every key, ended keys included, its hold floors, and every open call. */
export async function compareTables({ rows }: Pick<StoreUnderTest, 'rows'>, world: World): Promise<void> {
  const months = (await rows('key_month')).map((row) => ({
    key: monthKey(String(row['key_id']), String(row['month'])),
    figures: [row['spent_nanos'], row['held_nanos'], row['lost_nanos']],
  }))
  const expected = [...world.months].map(([key, month]) => ({
    key,
    figures: [month.spentNanos, month.heldNanos, month.lostNanos],
  }))
  assert.deepEqual(inOrder(months), inOrder(expected), 'the months of all keys')

  const floors = (await rows('hold_floor')).map((row) => [
    `${monthKey(String(row['key_id']), String(row['month']))} ${row['endpoint']} ${row['model']}`,
    { nanos: row['nanos'], listNanos: row['list_nanos'] },
  ])
  assert.deepEqual(Object.fromEntries(floors), Object.fromEntries(world.floors), 'what holds have learned')

  const open = (await rows('call')).filter((row) => row['state'] === 'in_flight')
  const expectedOpen = [...world.calls.values()].filter((call) => call.state === 'in_flight')
  assert.deepEqual(
    open.map((row) => [row['id'], row['hold_nanos'], row['hold_list_nanos']]).toSorted(),
    expectedOpen.map((call) => [call.id, call.holdNanos, call.holdListNanos]).toSorted(),
    'the open calls',
  )
}

/** A month in which nothing was ever held or spent may have a row or none. */
function inOrder(months: readonly { key: string; figures: unknown[] }[]) {
  return months
    .filter(({ figures }) => figures.some((figure) => figure !== 0n))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
}
