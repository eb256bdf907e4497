import assert from 'node:assert/strict'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
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

test('a suspension refuses the calls that wait on other nodes, and lets running ones finish', async () => {
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

for (const limit of ['ceiling', 'credit'] as const)
  test(`500 callers of two accounts on three nodes: the ${limit} of each holds`, async () => {
    const isCredit = limit === 'credit'
    const create = () => createAccount(isCredit ? {} : { monthly_budget_usd: TEN_CALLS_USD })
    const accounts = [await create(), await create()]
    for (const { id } of isCredit ? accounts : []) {
      const credit = { amount_usd: TEN_CALLS_USD, reason: 'paid' }
      await cluster.manage(0, 'POST', `/gateway/v1/credits?account=${id}`, credit)
      await cluster.manage(0, 'PATCH', `/gateway/v1/accounts/${id}`, { credit_enforced: true })
    }
    const replies = await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const key = accounts[i % 2]?.keys[i % 3] ?? ''
        return (await sendCall(cluster.node(i).url, { name: `${limit}-${i}`, key, tokens: TOKENS })).status
      }),
    )
    // A database that is slow on a busy machine is no refusal.
    const expected = isCredit ? [200, 400, 429, 503] : [200, 402, 429, 503]
    assert.deepEqual(
      [...new Set(replies)].filter((status) => !expected.includes(status)),
      [],
    )
    for (const { id } of accounts) {
      const account = await cluster.manage(1, 'GET', `/gateway/v1/accounts/${id}`)
      const spentNanos = BigInt(Math.round(Number(account['month_spend_usd']) * 1e9))
      assert.ok(spentNanos > 0n && account['month_held_usd'] === 0)
      // Keys without a ceiling of their own hold in full, so that the account passes its limit by one call at most.
      assert.ok(spentNanos <= COST_NANOS * 11n, String(spentNanos))
      if (isCredit) assert.ok(Number(account['balance_usd']) >= -Number(COST_NANOS) / 1e9)
    }
  })
