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

test('POST /gateway/v1/credits 400: a top-up beyond the maximum credit', async () => {
  const rich = await startGateway()
  try {
    const ask = askOf(rich)
    const add = (amount_usd: number, name?: string) =>
      ask('POST', '/gateway/v1/credits', {
        json: { amount_usd, reason: 'r' },
        headers: name === undefined ? {} : { 'idempotency-key': name },
      })
    for (let i = 0; i < 9; i++) assert.equal((await add(1_000_000_000, `billion ${i}`)).status, 201)
    const wanted = { code: 'bad_request', param: 'amount_usd', message: /at most 9000000000 US dollars/ }
    assertRefused(await add(0.000000001), 400, wanted)
    // A command with a name may be a repetition, so the gateway asks the store.
    assertRefused(await add(1_000_000_000, 'billion 9'), 400, wanted)
    const repeated = await add(1_000_000_000, 'billion 8')
    assert.deepEqual([repeated.status, repeated.headers.get('idempotent-replayed')], [201, 'true'])
    const { body } = await ask('GET', '/gateway/v1/balance')
    assert.equal(body['credited_usd'], 9_000_000_000)
  } finally {
    await rich.close()
  }
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
