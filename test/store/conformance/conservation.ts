import assert from 'node:assert/strict'
import type { StoreUnderTest } from './fixtures.ts'

type Rows = readonly Record<string, unknown>[]

const sum = (rows: Rows, column: string): bigint =>
  rows.reduce((total, row) => total + BigInt(String(row[column] ?? 0)), 0n)

/** The id of the first object in `data`, which is the subject of the event. */
const SUBJECT = /^\{"(?:key|credit)":\{"id":"([^"]+)"/

/** A change and its event are both stored, or neither. */
function assertRecorded(events: Rows, types: readonly string[], subjects: Rows): void {
  const recorded = events
    .filter(({ type }) => types.includes(String(type)))
    .map(({ data }) => SUBJECT.exec(String(data))?.[1])
  assert.deepEqual(recorded.sort(), subjects.map(({ id }) => String(id)).sort(), types.join(' and '))
}

/** Balance = credits - charges, months and days = their calls, holds = the holds of calls in flight. */
export async function assertConserved({ rows }: Pick<StoreUnderTest, 'rows'>): Promise<void> {
  const calls = await rows('call')
  const settled = calls.filter((call) => call['state'] === 'settled')
  const open = await rows('hold')
  const credits = await rows('credit')
  const rollups = await rows('rollup')

  for (const account of await rows('account')) {
    const own = (row: Record<string, unknown>) => row['account_id'] === account['id']
    assert.equal(account['credited_nanos'], sum(credits.filter(own), 'amount_nanos'), 'credits')
    assert.equal(account['charged_nanos'], sum(settled.filter(own), 'cost_nanos'), 'charges')
    assert.equal(account['held_nanos'], sum(open.filter(own), 'account_hold_nanos'), 'holds')
    assert.equal(account['short_nanos'], sum(open.filter(own), 'short_nanos'), 'short holds')
    const inMonth = (row: Record<string, unknown>) => own(row) && row['month'] === account['month']
    assert.equal(account['spent_nanos'], sum(settled.filter(inMonth), 'cost_nanos'), 'spent of an account')
  }
  const keys = await rows('api_key')
  const events = await rows('event')
  assertRecorded(events, ['key.created', 'key.rotated'], keys)
  assertRecorded(
    events,
    ['key.revoked'],
    keys.filter((key) => key['revoked_at_ms'] !== null),
  )
  assertRecorded(events, ['credit.added'], credits)
  for (const budget of await rows('budget')) {
    const its = new Set(keys.filter((key) => key['budget_id'] === budget['id']).map((key) => key['id']))
    const own = (row: Record<string, unknown>) => its.has(row['key_id']) && row['month'] === budget['month']
    const today = (row: Record<string, unknown>) => own(row) && row['day'] === budget['day']
    assert.equal(budget['spent_nanos'], sum(settled.filter(own), 'cost_nanos'), 'spent of a budget')
    assert.equal(budget['day_spent_nanos'], sum(settled.filter(today), 'cost_nanos'), 'spent of a day')
    assert.equal(budget['held_nanos'], sum(open.filter(own), 'hold_nanos'), 'held of a budget')
    assert.equal(budget['lost_nanos'], sum(calls.filter(own), 'lost_list_nanos'), 'lost of a budget')
  }
  for (const rollup of rollups) {
    const model = (call: Record<string, unknown>) => call['model_served'] ?? call['model_asked'] ?? ''
    const own = settled.filter(
      (call) =>
        call['day'] === rollup['day'] &&
        call['key_id'] === rollup['key_id'] &&
        model(call) === rollup['model'],
    )
    assert.equal(rollup['requests'], sum(own, 'requests'), 'requests of a day')
    for (const column of [
      'cost_nanos',
      'list_nanos',
      'input_tokens',
      'output_tokens',
      'cache_read_tokens',
      'cache_write_tokens',
    ]) {
      assert.equal(rollup[column], sum(own, column), `${column} of a day`)
    }
  }
  assert.equal(sum(rollups, 'requests'), sum(settled, 'requests'), 'every settled call is in a day')
  assert.equal(sum(rollups, 'cost_nanos'), sum(settled, 'cost_nanos'))
}
