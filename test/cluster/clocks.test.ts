import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { Cluster } from './cluster.ts'
import { closeConnections, sendCall } from './send-call.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const clockOff = (shiftMs: number) => ({
  CLOCK_SHIFT_MS: String(shiftMs),
  NODE_OPTIONS: `--import=${new URL('shift-clock.ts', import.meta.url).href}`,
})

/** The clock of one node is right, one is 40 days behind, as without NTP, one is a day ahead. */
let cluster: Cluster
before(async () => {
  cluster = await Cluster.start([{}, clockOff(-40 * DAY_MS), clockOff(DAY_MS)])
})
after(async () => {
  await cluster.close()
  await closeConnections()
  await stopPostgres()
})

const NODES = [0, 1, 2]

test('the machines of the nodes have different clocks', () => {
  const env = { ...process.env, ...clockOff(-40 * DAY_MS) }
  const nodeMs = Number(execFileSync(process.execPath, ['-p', 'Date.now()'], { env, encoding: 'utf8' }))
  assert.equal(Math.round((nodeMs - Date.now()) / DAY_MS), -40)
})

test('a call belongs to the day and month of the database, whichever node admits it', async () => {
  const { id, key } = await cluster.createKey({ monthly_budget_usd: 1 })
  const beforeMs = await cluster.nowMs()
  for (const i of NODES) {
    const reply = await sendCall(cluster.node(i).url, { name: `day-${i}`, key })
    assert.equal(reply.status, 200, reply.text)
  }
  const afterMs = await cluster.nowMs()
  const calls = await cluster.callsOf(id)
  assert.equal(calls.size, 3)
  const days = [beforeMs, afterMs].map((ms) => new Date(ms).toISOString().slice(0, 10))
  for (const call of calls.values()) {
    const [startedMs, endedMs] = [Number(call['started_at_ms']), Number(call['ended_at_ms'])]
    assert.ok(beforeMs <= startedMs && startedMs <= endedMs && endedMs <= afterMs)
    assert.ok(days.includes(String(call['day'])))
    assert.equal(call['month'], String(call['day']).slice(0, 7))
  }
  await cluster.assertBalanced()
})

test('a key expires by the clock of the database on every node', async () => {
  const made = await Promise.all(NODES.map(() => cluster.createKey()))
  const [soon, over] = made
  assert.ok(soon !== undefined && over !== undefined)
  const set = 'UPDATE api_key SET expires_at_ms = now_ms() + $1 WHERE id = $2'
  await cluster.database.query(set, [HOUR_MS, soon.id])
  await cluster.database.query(set, [-HOUR_MS, over.id])
  for (const { url } of cluster.nodes) {
    assert.equal((await sendCall(url, { name: 'expiry', key: soon.key })).status, 200)
    assert.equal((await sendCall(url, { name: 'expiry', key: over.key })).status, 401)
  }
})
