import assert from 'node:assert/strict'
import pg from 'pg'
import { assertCrossings, budgetEvents } from '../support/budget-events.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { NANOS_PER_TOKEN } from '../support/upstream-answer.ts'
import { Cluster } from './cluster.ts'
import { Hammer } from './hammer.ts'
import { type ClientCall, type ClientReply, closeConnections, sendCall } from './send-call.ts'

let cluster: Cluster
before(async () => {
  cluster = await Cluster.start([{}, {}, {}])
})
after(async () => {
  await cluster.close()
  await closeConnections()
  await stopPostgres()
})

async function createAccount(fields: Record<string, unknown> = {}): Promise<{ id: string; keys: string[] }> {
  const { id } = await cluster.manage(0, 'POST', '/gateway/v1/accounts', { name: 'account', ...fields })
  const keys = await Promise.all(
    [0, 1, 2].map(async (i) => {
      const made = await cluster.manage(i, 'POST', `/v1/keys?account=${id}`, { name: `key ${i}` })
      return String(made['key'])
    }),
  )
  return { id: String(id), keys }
}

test('a suspension applies on every node once it is acknowledged', async () => {
  const { id, keys } = await createAccount()
  const [key = ''] = keys
  for (let round = 0; round < 5; round += 1) {
    let isSuspended = false
    let late = 0
    const callers = Array.from({ length: 12 }, async (_, i) => {
      for (let n = 0; n < 10; n += 1) {
        const afterAnswer = isSuspended
        const reply = await sendCall(cluster.node(i).url, { name: `s-${round}-${i}-${n}`, key, tokens: 1 })
        assert.ok([200, 403, 503].includes(reply.status), String(reply.status))
        if (afterAnswer && reply.status === 200) late += 1
      }
    })
    await cluster.manage(round, 'POST', `/gateway/v1/accounts/${id}/suspend`)
    isSuspended = true
    await Promise.all(callers)
    assert.equal(late, 0)
    for (let i = 0; i < 3; i += 1) {
      const reply = await sendCall(cluster.node(i).url, { name: `after-${round}-${i}`, key, tokens: 1 })
      assert.equal(reply.status, 403)
    }
    await cluster.manage(round + 1, 'POST', `/gateway/v1/accounts/${id}/resume`)
  }
})

test('a suspension refuses waiting calls on other nodes and lets running ones finish', async () => {
  const { id, keys } = await createAccount({ monthly_budget_usd: 0.000_001 })
  const [key = ''] = keys
  const running = sendCall(cluster.node(1).url, { name: 'gate of the suspended', key })
  const gated = await cluster.upstream.next()
  const waiting = sendCall(cluster.node(1).url, { name: 'waiting', key })
  await until('the second call waits', async () => {
    const { data } = await cluster.manage(1, 'GET', `/gateway/v1/requests?account=${id}&state=waiting`)
    return (data as unknown[]).length === 1
  })
  await cluster.manage(0, 'POST', `/gateway/v1/accounts/${id}/suspend`)
  const refused = await waiting
  assert.deepEqual([refused.status, refused.text.includes('account_suspended')], [403, true])
  gated.finish()
  assert.equal((await running).status, 200)
})

const TOKENS = 1_000
const COST_NANOS = BigInt(TOKENS) * NANOS_PER_TOKEN
const TEN_CALLS_USD = Number(COST_NANOS * 10n) / 1e9

test('500 callers of two accounts on three nodes: the ceiling of each holds', async () => {
  const create = () => createAccount({ monthly_budget_usd: TEN_CALLS_USD })
  const accounts = [await create(), await create()]
  const replies = await Promise.all(
    Array.from({ length: 500 }, async (_, i) => {
      const key = accounts[i % 2]?.keys[i % 3] ?? ''
      return (await sendCall(cluster.node(i).url, { name: `ceiling-${i}`, key, tokens: TOKENS })).status
    }),
  )
  // A timeout of a busy database is not a refusal.
  assert.deepEqual(
    [...new Set(replies)].filter((status) => ![200, 402, 429, 503].includes(status)),
    [],
  )
  await until('every admission has a known outcome', async () => (await openCalls()) === 0)
  for (const { id } of accounts) {
    const account = await cluster.manage(1, 'GET', `/gateway/v1/accounts/${id}`)
    const spentNanos = BigInt(Math.round(Number(account['month_spend_usd']) * 1e9))
    assert.ok(spentNanos > 0n && account['month_held_usd'] === 0)
    // Keys without their own ceiling hold in full, so the account exceeds its limit by at most one call.
    assert.ok(spentNanos <= COST_NANOS * 11n, String(spentNanos))
  }
})

test('500 concurrent calls on three nodes exceed a cap by at most one call and emit each threshold once', async () => {
  const capNanos = 10_000_000n
  const tokensOf = (i: number) => 800 + ((i * 7_919) % 200)
  const { id, key } = await cluster.createKey({ monthly_budget_usd: 0.01 })
  // The first call of a month creates the row that the other calls share.
  assert.equal((await sendCall(cluster.node(0).url, { name: 'first', key, tokens: 0 })).status, 200)
  const letGo = await holdBudget(id)
  const answered = Promise.all(
    Array.from({ length: 500 }, (_, i) =>
      sendPatiently(cluster.node(i).url, {
        name: `cap-${i}`,
        key,
        tokens: tokensOf(i),
        surface: i % 2 === 0 ? 'messages' : 'chat',
        stream: i % 5 === 0,
      }),
    ),
  )
  await letGo()
  const replies = await answered
  const served = replies.flatMap(({ status, name }) => (status === 200 ? [name] : [])).sort()
  assert.deepEqual(receivedBy('cap-').sort(), served, 'upstream received exactly the served calls')
  await until('every admission has a known outcome', async () => (await openCalls()) === 0)
  const settled = [...(await cluster.callsOf(id))].filter(
    ([name, call]) => name !== 'first' && call['state'] === 'settled',
  )
  assert.deepEqual(settled.map(([name]) => name).sort(), served, 'and exactly these calls have a record')
  const costs = replies.flatMap(({ status }, i) =>
    status === 200 ? [BigInt(tokensOf(i)) * NANOS_PER_TOKEN] : [],
  )
  const spent = costs.reduce((sum, cost) => sum + cost, 0n)
  const highest = costs.reduce((most, cost) => (cost > most ? cost : most), 0n)
  assert.ok(spent >= capNanos && spent < capNanos + highest, `${spent} spent of ${capNanos}`)
  for (const { status, text, header } of replies) {
    if (status === 200) continue
    assert.equal(status, 402, text)
    assert.ok(Number(header('x-svc-budget-spent-usd')) >= 0.01, 'refused while there was room')
  }
  await cluster.assertBalanced()
  const crossings = budgetEvents(await cluster.database.rows('event'), id)
  assert.deepEqual(
    crossings.map(({ percent }) => percent).sort((a, b) => a - b),
    [50, 80, 90, 100],
  )
  assertCrossings(crossings, await cluster.database.rows('call'))
})

test('a revoked, expired or spent key is admitted on no node, even one that was paused or cut off', async () => {
  const keys = await Promise.all(
    [{}, {}, { monthly_budget_usd: 100 }].map((fields) => cluster.createKey(fields)),
  )
  const [revoked, expired, poor] = keys
  assert.ok(revoked !== undefined && expired !== undefined && poor !== undefined)
  const [, paused, cutOff] = cluster.nodes
  assert.ok(paused !== undefined && cutOff !== undefined)
  const hammer = new Hammer(
    'end',
    cluster.nodes.map((node) => node.url),
    keys,
  )
  await hammer.answered(0, [0, 1, 2], keys, 10)

  // Both nodes are in the middle of calls, with commands to the database sent or about to be sent.
  paused.pause()
  cutOff.wire.mute()
  const expiresAtMs = (await cluster.nowMs()) + 500
  await Promise.all([
    cluster.manage(0, 'POST', `/v1/keys/${revoked.id}/revoke`),
    cluster.manage(0, 'PATCH', `/v1/keys/${poor.id}`, { monthly_budget_usd: 0 }),
    cluster.manage(0, 'PATCH', `/v1/keys/${expired.id}`, { expires_at: new Date(expiresAtMs).toISOString() }),
  ])
  // The commands wait until the database has finished what both nodes began, perhaps past the expiry.
  const endedMs = Math.max(expiresAtMs, await cluster.nowMs())
  const admittedBefore = await Promise.all([revoked, poor].map(({ id }) => cluster.callsOf(id)))
  await until('the third has expired', async () => (await cluster.nowMs()) >= expiresAtMs)
  const firstLate = hammer.next
  await hammer.answered(firstLate, [0, 2], keys, 2)
  const firstHealed = hammer.next
  paused.resume()
  cutOff.wire.heal()
  await until('every node asks the database again', async () => {
    const last = (node: number) => hammer.answers.findLast((call) => call.node === node)
    return [0, 1, 2].every((node) => [401, 402].includes(last(node)?.status ?? 0))
  })
  await hammer.answered(firstHealed, [0, 1, 2], keys, 10)
  await hammer.stop()

  for (const [i, { id }] of [revoked, poor].entries()) {
    const names = (calls: ReadonlyMap<string, unknown> | undefined) => [...(calls?.keys() ?? [])].sort()
    assert.deepEqual(names(await cluster.callsOf(id)), names(admittedBefore[i]), 'admitted after the answer')
  }
  for (const [name, call] of await cluster.callsOf(expired.id)) {
    assert.ok(Number(call['started_at_ms']) < endedMs, `${name} was admitted after the expiry`)
  }
  const [key] = await cluster.database.query('SELECT revoked_at_ms FROM api_key WHERE id = $1', [revoked.id])
  for (const [name, call] of await cluster.callsOf(revoked.id)) {
    assert.ok(BigInt(String(call['started_at_ms'])) <= BigInt(String(key?.['revoked_at_ms'])), name)
  }
  const numberOf = (name: string) => Number(name.slice('end-'.length))
  assert.deepEqual(
    receivedBy('end-').filter((name) => numberOf(name) >= firstLate),
    [],
    'a call that was sent afterwards reached upstream',
  )
  const late = hammer.answers.filter(({ number }) => number >= firstLate)
  for (const { keyId, status, node } of late) {
    // On a busy machine the database may take too long for any node.
    const refusal = keyId === poor.id ? 402 : 401
    assert.ok(status === refusal || status === 503, `node ${node}: ${status}`)
  }
  await until('every admission has a known outcome', async () => (await openCalls()) === 0)
  await cluster.assertBalanced()
  for (const node of cluster.nodes) {
    const { key: fresh } = await cluster.createKey()
    assert.equal((await sendCall(node.url, { name: 'well again', key: fresh })).status, 200)
  }
})

/** A 503 is retried: on a busy machine the database may take too long, which is not a refusal. */
async function sendPatiently(url: string, call: ClientCall): Promise<ClientReply & { name: string }> {
  for (let attempt = 0; ; attempt++) {
    const name = attempt === 0 ? call.name : `${call.name}-${attempt}`
    const reply = await sendCall(url, { ...call, name })
    if (reply.status !== 503 || attempt > 20) return { ...reply, name }
  }
}

/** Locks a key's budget until every node waits for it. Twice: only a second batch has all calls that arrived. */
async function holdBudget(keyId: string): Promise<() => Promise<void>> {
  const budgetId = keyId.replace('key_', 'bud_')
  const hold = async () => {
    const client = new pg.Client(cluster.database.url)
    client.on('error', () => {})
    await client.connect()
    await client.query('BEGIN')
    return { client, held: client.query('SELECT 1 FROM budget WHERE id = $1 FOR UPDATE', [budgetId]) }
  }
  const waiting = async () => {
    const who = "datname = current_database() AND wait_event_type = 'Lock'"
    return (await cluster.database.query(`SELECT pid FROM pg_stat_activity WHERE ${who}`)).length
  }
  const first = await hold()
  await first.held
  return async () => {
    try {
      await until('all nodes wait', async () => (await waiting()) >= 3)
      const second = await hold()
      await until('this node waits too', async () => (await waiting()) >= 4)
      await first.client.end()
      await second.held
      await until('all nodes wait again', async () => (await waiting()) >= 3)
      await second.client.end()
    } finally {
      await first.client.end()
    }
  }
}

function receivedBy(prefix: string): string[] {
  return cluster.upstream.names.filter((name) => name.startsWith(prefix))
}

async function openCalls(): Promise<number> {
  return (await cluster.database.query("SELECT id FROM hold WHERE state = 'in_flight'")).length
}
