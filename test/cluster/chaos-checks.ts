import assert from 'node:assert/strict'
import { parseUsd } from '../../src/kernel/money.ts'
import { assertCrossings, budgetEvents } from '../support/budget-events.ts'
import { runTollgate } from '../support/tollgate-process.ts'
import { NANOS_PER_TOKEN } from '../support/upstream-answer.ts'
import { checkHistory } from './chaos-history.ts'
import type { ChaosLedger } from './chaos-ledger.ts'
import type { ChaosLoad, LoadedKey } from './chaos-load.ts'
import type { Cluster } from './cluster.ts'

export interface Facts {
  readonly cluster: Cluster
  readonly keys: readonly LoadedKey[]
  readonly load: ChaosLoad
  readonly ledger: ChaosLedger
}

export async function checkLedger(facts: Facts): Promise<void> {
  const { cluster, load, ledger } = facts
  assert.deepEqual(load.mangled, [], 'answers that were changed on their way')
  assert.ok(
    cluster.nodes.every((node) => node.refusedBytes === 0),
    'a settlement was refused',
  )
  await checkRecords(facts)
  const late = await checkHistory(cluster)
  await checkCaps(facts, late)
  await checkEvents(facts)
  await checkCommands(cluster, ledger)
  await cluster.assertBalanced()
  const audit = await runTollgate(['audit'], { TOLLGATE_DATABASE_URL: cluster.database.url })
  assert.equal(audit.code, 0, audit.stdout + audit.stderr)
}

/** Each call reached upstream at most once and has one record, and each complete call is charged. */
async function checkRecords({ cluster, load }: Facts): Promise<void> {
  const { names } = cluster.upstream
  assert.equal(new Set(names).size, names.length, 'a call was sent twice')
  const rows = await cluster.database.query('SELECT user_agent, state, cost_nanos FROM call')
  const records = Map.groupBy(rows, (row) => String(row['user_agent']))
  for (const name of names) assert.equal(records.get(name)?.length, 1, `${name} reached upstream`)
  for (const [name, same] of records) assert.equal(same.length, 1, `${name} has ${same.length} records`)
  const sent = new Set(names)
  for (const [name, [record]] of records) {
    if (sent.has(name)) continue
    assert.notEqual(record?.['state'], 'settled', `${name} is settled and was never sent`)
  }
  for (const { call, costUsd } of load.served) {
    const record = records.get(call.name)?.[0]
    assert.equal(record?.['state'], 'settled', `${call.name} was answered to its end`)
    assert.equal(record?.['cost_nanos'], BigInt(call.tokens ?? 0) * NANOS_PER_TOKEN, call.name)
    if (costUsd !== undefined) assert.equal(record?.['cost_nanos'], parseUsd(costUsd), call.name)
  }
}

/** A cap is exceeded by at most one call, plus the calls that settled after an interruption. */
async function checkCaps({ cluster, keys }: Facts, late: ReadonlySet<string>): Promise<void> {
  for (const { id, capNanos } of keys) {
    if (capNanos === null) continue
    const rows = await cluster.database.query(
      "SELECT id, cost_nanos FROM call WHERE key_id = $1 AND state = 'settled'",
      [id],
    )
    const costs = rows
      .filter((row) => !late.has(String(row['id'])))
      .map((row) => BigInt(String(row['cost_nanos'])))
    const spent = costs.reduce((sum, cost) => sum + cost, 0n)
    const highest = costs.reduce((most, cost) => (cost > most ? cost : most), 0n)
    assert.ok(spent < capNanos + highest || spent === 0n, `${id} has spent ${spent} of ${capNanos}`)
  }
}

/** Each threshold below a key's spend has exactly one event, and no other threshold has one. */
async function checkEvents({ cluster: { database }, keys }: Facts): Promise<void> {
  const [events, calls] = await Promise.all([database.rows('event'), database.rows('call')])
  for (const { id, capNanos } of keys) {
    const crossings = budgetEvents(events, id)
    assertCrossings(crossings, calls)
    const [key] = await database.query('SELECT monthly_budget_nanos AS cap FROM budget WHERE id = $1', [
      id.replace('key_', 'bud_'),
    ])
    const cap = key?.['cap']
    // An edit set the cap of this key to zero, without a call.
    if (cap === 0n)
      assert.equal(crossings.filter((event) => event.capNanos === 0n).length, 1, `${id} is empty`)
    if (capNanos === null || cap === 0n) continue
    for (const [month, spent] of await spentOf(database, id)) {
      const passed: readonly number[] = [50, 80, 90, 100].filter(
        (percent) => capNanos * BigInt(percent) <= spent * 100n,
      )
      const percents = crossings.filter((event) => event.month === month).map(({ percent }) => percent)
      assert.deepEqual(
        percents.toSorted((a, b) => a - b),
        passed,
        `${id} has spent ${spent} of ${capNanos}`,
      )
    }
  }
}

async function spentOf({ query }: Cluster['database'], keyId: string): Promise<[string, bigint][]> {
  const months = await query(
    'SELECT month, sum(coalesce(cost_nanos, 0))::bigint AS spent_nanos FROM call WHERE key_id = $1 GROUP BY 1',
    [keyId],
  )
  return months.map((row) => [String(row['month']), BigInt(String(row['spent_nanos']))])
}

/** Each acknowledged command was done, and each repeated one was done once. */
async function checkCommands({ database }: Cluster, ledger: ChaosLedger): Promise<void> {
  const open = await database.query(
    `SELECT k.id FROM api_key k JOIN budget b ON b.id = k.budget_id
     WHERE revoked_at_ms IS NULL AND monthly_budget_nanos IS DISTINCT FROM 0`,
  )
  const usable = new Set(open.map((row) => String(row['id'])))
  assert.deepEqual(
    [...ledger.ended].filter((id) => usable.has(id)),
    [],
    'keys that were ended can be used',
  )
  const credits = await database.query("SELECT id FROM credit WHERE reason = 'chaos'")
  assert.equal(credits.length, ledger.topUps, 'each top-up is recorded once')
}
