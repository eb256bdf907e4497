import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { Cluster } from './cluster.ts'
import { type ClientReply, closeConnections, sendCall } from './send-call.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-one-port-'))
let started: Cluster | null = null
after(async () => {
  await started?.close()
  await closeConnections()
  await stopPostgres()
  rmSync(folder, { recursive: true })
})

const STREAMS = 100
const TRY_MS = 5_000

test('processes on one port share the connections, and one that ends loses no stream', async () => {
  const config = join(folder, 'tollgate.json')
  writeFileSync(config, '{"metrics": {"port": 0}}')
  const own = {
    TOLLGATE_REUSE_PORT: 'true',
    TOLLGATE_PORT: String(await freePort()),
    TOLLGATE_CONFIG: config,
  }
  const cluster = await Cluster.start([own, own])
  started = cluster
  const { url } = cluster.node(0)
  assert.equal(url, cluster.node(1).url)
  const { key } = await cluster.manage(0, 'POST', '/v1/keys', { name: 'a' })
  const call = (name: string, signal?: AbortSignal): Promise<ClientReply> =>
    sendCall(url, { name, key: String(key), stream: true, tokens: 3 }, signal)

  const replies = Array.from({ length: STREAMS }, (_, i) => call(`gate ${i}`))
  const gates = await Promise.all(replies.map(() => cluster.upstream.next()))
  for (const gate of gates) gate.begin()
  const held = 'SELECT count(*) AS streams FROM hold GROUP BY node_id ORDER BY 1'
  const [fewest] = await cluster.database.query(held)
  assert.ok(Number(fewest?.['streams']) >= STREAMS / 5 && Number(fewest?.['streams']) <= STREAMS / 2)

  const ending = cluster.node(0).stop()
  let answered = 0
  await until('the other process has all new connections', async () => {
    // A client that loses its connection while a process ends tries again.
    const outcome = await call(`new ${answered}`, AbortSignal.timeout(TRY_MS)).catch(() => null)
    answered = outcome?.status === 200 ? answered + 1 : 0
    return answered === 50
  })
  for (const gate of gates) gate.finish(3)
  for (const reply of await Promise.all(replies)) assert.match(reply.text, /message_stop/)
  await ending
  assert.equal((await call('last')).status, 200)
})
