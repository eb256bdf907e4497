import assert from 'node:assert/strict'
import { limits } from '../../src/kernel/limits.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { movableClock } from './movable-clock.ts'

const clock = movableClock()
// All requests are in one minute.
clock.advance(60_000 - (Date.now() % 60_000))
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
closeAfter(gateway)

test('an account makes 600 changes a minute; revoking and other accounts are not limited', async () => {
  const { id } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'busy' })
  const rename = (account: unknown) =>
    fetch(`${gateway.url}/gateway/v1/credits?account=${account}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.adminKey}` },
      body: '{}',
    })
  const { id: key } = await gateway.manage('POST', `/v1/keys?account=${id}`, { name: 'a' })
  const statuses: number[] = []
  for (let i = 1; i <= limits.changesPerMinuteMax; i += 1) statuses.push((await rename(id)).status)
  // One change was the key. Refused requests count too, because they cost work.
  assert.deepEqual([statuses.filter((status) => status === 400).length, statuses.at(-1)], [599, 429])
  const refused = await rename(id)
  assert.match(await refused.text(), /600 changes in this minute/)
  assert.match(String(refused.headers.get('retry-after')), /^\d+$/)
  assert.equal((await rename('default')).status, 400)
  assert.equal((await gateway.manage('POST', `/v1/keys/${key}/revoke`))['status'], 'revoked')
  clock.advance(60_000)
  assert.equal((await rename(id)).status, 400)
})
