import assert from 'node:assert/strict'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { Cluster } from './cluster.ts'
import { type ClientReply, closeConnections, sendCall } from './send-call.ts'
import { NANOS_PER_TOKEN } from './upstream-answer.ts'

/** Limits of a budget over three nodes: each holds for all keys of a chain of rotations together. */

let cluster: Cluster
before(async () => {
  cluster = await Cluster.start([{}, {}, {}])
})
after(async () => {
  await cluster.close()
  await closeConnections()
  await stopPostgres()
})

const DAY_MS = 86_400_000
const tokensOf = (i: number) => 800 + ((i * 7_919) % 200)

/** Sends calls to all nodes at once. A 503 is tried again: the database may take too long on a busy machine. */
async function sendAll(prefix: string, keys: readonly string[], calls: number): Promise<ClientReply[]> {
  const send = async (i: number): Promise<ClientReply> => {
    const call = { key: keys[i % keys.length] ?? '', tokens: tokensOf(i), stream: i % 5 === 0 }
    for (let attempt = 0; ; attempt++) {
      const reply = await sendCall(cluster.node(i).url, { ...call, name: `${prefix}-${i}-${attempt}` })
      if (reply.status !== 503 || attempt > 20) return reply
    }
  }
  return await Promise.all(Array.from({ length: calls }, (_, i) => send(i)))
}

async function callsOf(ids: readonly string[]) {
  const isOpen = async () =>
    (await cluster.database.query("SELECT 1 FROM call WHERE state = 'in_flight'")).length > 0
  await until('no call is in flight', async () => !(await isOpen()))
  const rows = await cluster.database.query(
    "SELECT cost_nanos, started_at_ms FROM call WHERE key_id = ANY($1) AND state = 'settled'",
    [ids],
  )
  return rows.map((row) => ({ cost: BigInt(String(row['cost_nanos'])), atMs: Number(row['started_at_ms']) }))
}

const CEILINGS = [
  { what: '300 calls at a daily ceiling', field: 'daily_budget_usd', rotations: 0 },
  { what: '300 calls of a chain of five rotations', field: 'monthly_budget_usd', rotations: 5 },
] as const

for (const { what, field, rotations } of CEILINGS)
  test(`${what} on three nodes pass it by at most one call, and all of it is spent`, async () => {
    const capNanos = 10_000_000n
    const first = await cluster.createKey({ [field]: 0.01 })
    const [ids, keys] = [[first.id], [first.key]]
    const load: Promise<ClientReply[]>[] = [sendAll(`${field}-0`, [first.key], 300 / (rotations + 1))]
    // Each key is rotated while calls of those before it are in flight, and all keys go on being used.
    for (let n = 1; n <= rotations; n += 1) {
      const made = await cluster.manage(n, 'POST', `/v1/keys/${ids.at(-1)}/rotate`)
      ids.push(String(made['id']))
      keys.push(String(made['key']))
      load.push(sendAll(`${field}-${n}`, [...keys], 300 / (rotations + 1)))
    }
    const replies = (await Promise.all(load)).flat()
    const calls = await callsOf(ids)
    const sumOf = (of: typeof calls) => of.reduce((sum, { cost }) => sum + cost, 0n)
    const spent = sumOf(calls)
    // Midnight may come meanwhile; then the next day begins with the whole ceiling.
    const dayOf = ({ atMs }: { atMs: number }) =>
      field === 'daily_budget_usd' ? Math.floor(atMs / DAY_MS) : 0
    const sums = [...Map.groupBy(calls, dayOf).values()].map(sumOf)
    const most = calls.reduce((max, { cost }) => (cost > max ? cost : max), 0n)
    assert.ok(spent >= capNanos && sums.every((sum) => sum < capNanos + most), `${sums} spent of ${capNanos}`)
    assert.equal(calls.length, replies.filter(({ status }) => status === 200).length)
    assert.ok(most <= BigInt(1_000) * NANOS_PER_TOKEN)
    for (const { status, text } of replies) assert.ok(status === 200 || status === 402, text)
    for (const id of ids) {
      const record = await cluster.manage(0, 'GET', `/v1/keys/${id}`)
      assert.equal(Math.round(Number(record['month_spend_usd']) * 1e9), Number(spent))
      assert.equal(record['budget_id'], first.id.replace('key_', 'bud_'))
    }
    await cluster.assertBalanced()
  })

test('a rate of 60 admits exactly 60 calls in a minute to 500 callers on three nodes', async () => {
  const { id, key } = await cluster.createKey({ requests_per_minute: 60 })
  const replies = await sendAll('rate', [key], 500)
  const served = replies.filter(({ status }) => status === 200)
  const calls = await callsOf([id])
  assert.equal(calls.length, served.length)
  const minutes = Map.groupBy(calls, ({ atMs }) => Math.floor(atMs / 60_000))
  // A minute may end meanwhile; then the next one begins with another 60.
  const counts = [...minutes].sort(([a], [b]) => a - b).map(([, of]) => of.length)
  assert.ok(
    counts.every((count) => count <= 60),
    `${counts}`,
  )
  assert.ok(
    counts.slice(0, -1).every((count) => count === 60) && (counts.length > 1 || counts[0] === 60),
    `${counts}`,
  )
  for (const { status, text, header } of replies) {
    if (status === 200) continue
    assert.equal(status, 429, text)
    const seconds = Number(header('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 60, `retry-after: ${seconds}`)
  }
  await cluster.assertBalanced()
})
