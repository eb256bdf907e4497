import assert from 'node:assert/strict'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { Cluster } from './cluster.ts'
import { closeConnections, sendCall } from './send-call.ts'
import { NANOS_PER_TOKEN } from './upstream-answer.ts'

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

test('a suspension holds on every node from the instant its answer has arrived', async () => {
  const { id, keys } = await createAccount()
  const [key = ''] = keys
  for (let round = 0; round < 5; round += 1) {
    let isSuspended = false
    let late = 0
    const callers = Array.from({ length: 12 }, async (_, i) => {
      for (let n = 0; n < 10; n += 1) {
        const afterAnswer = isSuspended
        const reply = await sendCall(cluster.node(i).url, { name: `s-${round}-${i}-${n}`, key, tokens: 1 })
        assert.ok(reply.status === 200 || reply.status === 403, String(reply.status))
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

test('500 callers of two accounts on three nodes: the ceiling of each holds', async () => {
  const TOKENS = 1_000
  const capNanos = BigInt(TOKENS) * NANOS_PER_TOKEN * 10n
  const budget = Number(capNanos) / 1e9
  const accounts = [
    await createAccount({ monthly_budget_usd: budget }),
    await createAccount({ monthly_budget_usd: budget }),
  ]
  const replies = await Promise.all(
    Array.from({ length: 500 }, async (_, i) => {
      const key = accounts[i % 2]?.keys[i % 3] ?? ''
      return (await sendCall(cluster.node(i).url, { name: `c-${i}`, key, tokens: TOKENS })).status
    }),
  )
  assert.ok(replies.every((status) => status === 200 || status === 402 || status === 429))
  for (const { id } of accounts) {
    const account = await cluster.manage(1, 'GET', `/gateway/v1/accounts/${id}`)
    const spentNanos = BigInt(Math.round(Number(account['month_spend_usd']) * 1e9))
    assert.ok(spentNanos > 0n && account['month_held_usd'] === 0)
    // Keys without a ceiling of their own hold in full, so that the account passes its ceiling by one call at most.
    assert.ok(spentNanos <= capNanos + BigInt(TOKENS) * NANOS_PER_TOKEN, String(spentNanos))
  }
})
