import assert from 'node:assert/strict'
import type { SocketEntry } from '../../simulator/answer-request.ts'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { openSocket, type SocketClient } from '../simulator/socket-client.ts'
import { simulated } from '../sockets/turns-bench.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { Cluster } from './cluster.ts'

const entries: SocketEntry[] = []
let simulator: Simulator
let cluster: Cluster
before(async () => {
  simulator = await startSimulator({ chatKey: 'pc', onSocket: (entry) => entries.push(entry) })
  const upstream = { TOLLGATE_CHAT_URL: simulator.chatUrl, TOLLGATE_CHAT_KEY: 'pc' }
  cluster = await Cluster.start([upstream, upstream, upstream])
})
after(async () => {
  await cluster.close()
  await simulator.close()
  await stopPostgres()
})

/** A 503 is retried: a busy database is not a refusal. */
async function openOn(node: number, key: string): Promise<SocketClient> {
  const { hostname: host, port } = new URL(cluster.node(node).url)
  const headers = { authorization: `Bearer ${key}` }
  for (;;) {
    try {
      return await openSocket({ host, port: Number(port) }, '/v1/responses', { headers })
    } catch (error) {
      if (!(error as Error).message.includes('503')) throw error
    }
  }
}

const request = simulated('usage={"input_tokens":10,"output_tokens":1000}', { max_output_tokens: 1_000 })

const ENDS = {
  'a key that one node revokes': async () => {
    const { id, key } = await cluster.createKey()
    return { key, path: `/v1/keys/${id}/revoke` }
  },
  'an account that one node suspends': async () => {
    const { id } = await cluster.manage(0, 'POST', '/gateway/v1/accounts', { name: 'suspended' })
    const { key } = await cluster.manage(0, 'POST', `/v1/keys?account=${id}`, { name: 'of it' })
    return { key: String(key), path: `/gateway/v1/accounts/${id}/suspend` }
  },
}

for (const [what, prepare] of Object.entries(ENDS))
  test(`${what} loses its sockets on all nodes, and none admits a turn`, async () => {
    const { key, path } = await prepare()
    const sockets = await Promise.all([0, 1, 2].map((node) => openOn(node, key)))
    await cluster.manage(0, 'POST', path)
    const before = entries.filter(({ kind }) => kind === 'message').length
    sockets[1]?.send(request)
    for (const socket of sockets) assert.equal((await socket.closed()).code, 1008)
    assert.equal(entries.filter(({ kind }) => kind === 'message').length, before)
  })
