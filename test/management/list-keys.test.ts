import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { movableClock } from './movable-clock.ts'
import { type Answer, askOf, assertUnstored } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
closeAfter(gateway)
const ask = askOf(gateway)
const list = (query = '') => ask('GET', `/v1/keys${query}`)

const rowsOf = ({ status, body }: Answer) => {
  assert.equal(status, 200, JSON.stringify(body))
  return body['data'] as readonly Record<string, unknown>[]
}
const namesOf = (answer: Answer) => rowsOf(answer).map(({ name }) => name)

/** The gateway starts with a key named `test`; these keys follow. */
const alpha = await gateway.createKey('Alpha one')
const revoked = await gateway.createKey('alpha TWO')
await gateway.createKey('100%_sure', { expires_at: new Date(clock.nowMs() + 60_000).toISOString() })
await gateway.createKey('Öl & Gas')
await gateway.revokeKey(revoked.id)
clock.advance(60_000)

test('GET /v1/keys 200: all keys, newest first, each as its own endpoint shows it', async () => {
  const answer = await list()
  assertUnstored(answer)
  const { data, ...rest } = answer.body
  assert.deepEqual(rest, { object: 'list', has_more: false, next: null })
  assert.deepEqual(namesOf(answer), ['Öl & Gas', '100%_sure', 'alpha TWO', 'Alpha one', 'test'])
  for (const row of data as readonly { id: string }[]) {
    assert.deepEqual(row, (await ask('GET', `/v1/keys/${row.id}`)).body)
  }
})

test('GET /v1/keys 200: no search finds a secret', async () => {
  assert.deepEqual(rowsOf(await list(`?search=${alpha.key}`)), [])
  assert.deepEqual(rowsOf(await list(`?search=${alpha.key.slice(0, 17)}`)), [])
})
