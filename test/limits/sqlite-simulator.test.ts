import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { test } from '../support/suite.ts'

test('the simulator serves only while no account has its own upstream', async () => {
  const simulator = await startSimulator()
  const gateway = await startGateway({ chatUrl: simulator.chatUrl, simulator: true })
  try {
    const isSimulated = async () => (await gateway.manage('GET', '/gateway/v1/overview'))['simulator']
    const status = async (path: string) => {
      const headers = { authorization: `Bearer ${gateway.apiKey}` }
      return (await fetch(gateway.url + path, { headers })).status
    }
    const all = async () => [await isSimulated(), await status('/v1/models'), await status('/readyz')]
    assert.deepEqual(await all(), [true, 200, 200])
    const fields = { name: 'own', upstreams: { chat: { url: simulator.chatUrl } } }
    const { id } = await gateway.manage('POST', '/gateway/v1/accounts', fields)
    // The node is ready, because the calls of this account have an upstream.
    assert.deepEqual(await all(), [false, 503, 200])
    await gateway.manage('PATCH', `/gateway/v1/accounts/${id}`, { upstreams: { chat: null } })
    assert.deepEqual(await all(), [true, 200, 200])
  } finally {
    await gateway.close()
    await simulator.close()
  }
})
