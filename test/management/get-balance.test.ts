import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'
import { askOf, assertRefused, assertUnstored } from './own-client.ts'

const gateway = await startGateway()
after(() => gateway.close())
const ask = askOf(gateway)

test('GET /gateway/v1/balance 200: nothing at first, and nothing enforced', async () => {
  const answer = await ask('GET', '/gateway/v1/balance')
  assert.equal(answer.status, 200)
  assertUnstored(answer)
  assert.deepEqual(answer.body, {
    object: 'balance',
    balance_usd: 0,
    held_usd: 0,
    credited_usd: 0,
    charged_usd: 0,
    enforced: false,
  })
})

test('GET /gateway/v1/balance 400: a query parameter', async () => {
  const answer = await ask('GET', '/gateway/v1/balance?at=now')
  assertRefused(answer, 400, { code: 'bad_request', param: 'at' })
})

test('GET /gateway/v1/balance 200: what was added, to the nanodollar', async () => {
  await gateway.manage('POST', '/gateway/v1/credits', { amount_usd: 3.000000001, reason: 'top-up' })
  const { status, body } = await ask('GET', '/gateway/v1/balance')
  assert.equal(status, 200)
  assert.deepEqual(
    [body['balance_usd'], body['credited_usd'], body['charged_usd'], body['enforced']],
    [3.000000001, 3.000000001, 0, true],
  )
})
