import assert from 'node:assert/strict'
import { Cluster } from '../cluster/cluster.ts'
import { closeConnections, sendCall } from '../cluster/send-call.ts'
import { type RunningPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { serverUrl, stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { storeConformance } from './conformance/every.ts'
import { openMortalPostgres, openTestDatabase } from './postgres-under-test.ts'

/** `npm run test:long -- pgbouncer`: the store, and two nodes, through PgBouncer in transaction mode. */

let pgBouncer: RunningPgBouncer
before(async () => {
  pgBouncer = await startPgBouncer(await serverUrl())
  process.stdout.write(`${pgBouncer.version}\n`)
})
after(async () => {
  await closeConnections()
  await pgBouncer.stop()
  await stopPostgres()
})

storeConformance('PostgreSQL behind PgBouncer', () => openMortalPostgres((url) => pgBouncer.through(url)))

test('two nodes behind PgBouncer admit exactly what a budget allows', async () => {
  const database = await openTestDatabase()
  const url = pgBouncer.through(database.url)
  const cluster = await Cluster.start([{}, {}], { ...database, url })
  const { key } = await cluster.manage(0, 'POST', '/v1/keys', { name: 'a', requests_per_minute: 1_000 })
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, i) =>
      sendCall(cluster.node(i).url, { name: `c-${i}`, key: String(key), tokens: 1 }),
    ),
  )
  assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
  await cluster.close()
})
