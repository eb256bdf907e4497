import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
closeAfter(gateway)
const ask = askOf(gateway)
const credit = (json: unknown, headers: Record<string, string> = {}) =>
  ask('POST', '/gateway/v1/credits', { json, headers })
const balance = async () => (await ask('GET', '/gateway/v1/balance')).body

test('POST /gateway/v1/credits 201: adds to the balance without turning on enforcement', async () => {
  const before = await balance()
  const answer = await credit({ amount_usd: 12.000000001, reason: 'invoice 17' })
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  const { id, created_at, actor, ...rest } = answer.body
  assert.match(String(id), /^crd_/)
  assert.ok(!Number.isNaN(Date.parse(String(created_at))))
  const expected = Number(before['balance_usd']) + 12.000000001
  assert.equal((actor as { kind: string }).kind, 'admin_key')
  assert.deepEqual(rest, {
    object: 'credit',
    account_id: 'default',
    kind: 'top_up',
    amount_usd: 12.000000001,
    reason: 'invoice 17',
    balance_after_usd: expected,
  })
  const now = await balance()
  assert.deepEqual([now['balance_usd'], now['credited_usd'], now['enforced']], [expected, expected, false])
})

test('PATCH /gateway/v1/accounts/default: turns enforcement on only with a positive balance or force', async () => {
  const path = '/gateway/v1/accounts/default'
  const owing = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
  try {
    const own = askOf(owing)
    const patch = (json: unknown) => own('PATCH', path, { json })
    const assertAccount = ({ body }: { body: Record<string, unknown> }, enforced: boolean, balance: number) =>
      assert.deepEqual([body['credit_enforced'], body['balance_usd']], [enforced, balance])
    assertRefused(await patch({ credit_enforced: true }), 409, { code: 'balance_not_positive' })
    assertAccount(await own('GET', path), false, 0)
    assertAccount(await patch({ credit_enforced: true, force: true }), true, 0)
    assertAccount(await patch({ credit_enforced: false }), false, 0)
    await own('POST', '/gateway/v1/credits', { json: { amount_usd: 2, reason: 'invoice 1' } })
    assertAccount(await own('GET', path), false, 2)
    assertAccount(await patch({ credit_enforced: true }), true, 2)
    assertRefused(await patch({ credit_enforced: 'yes' }), 400, {
      code: 'bad_request',
      param: 'credit_enforced',
    })
    const asApiKey = await own('PATCH', path, { json: { credit_enforced: false }, key: owing.apiKey })
    assertRefused(asApiKey, 403, { code: 'admin_key_required' })
  } finally {
    await owing.close()
  }
})
