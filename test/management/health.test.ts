import assert from 'node:assert/strict'
import { createWriteProbe, READY_PROBE_MS } from '../../src/management/health.ts'
import { startGateway } from '../support/gateway.ts'
import { changeDatabase } from '../support/read-database.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'

const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
after(() => gateway.close())

for (const path of ['/healthz', '/readyz']) {
  test(`GET ${path} 200: without a key`, async () => {
    const response = await fetch(gateway.url + path)
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { status: 'ok' })
    assert.match(String(response.headers.get('x-svc-request-id')), /^req_/)
    assert.equal(response.headers.get('cache-control'), 'no-store')
  })
}

test('GET /readyz 503: where nothing can be written; /healthz does not ask for that', async () => {
  const status = async (path: string) => {
    const response = await fetch(gateway.url + path)
    await response.body?.cancel()
    return response.status
  }
  const onSqlite = gateway.databaseUrl === null
  await changeDatabase(
    gateway,
    onSqlite
      ? `CREATE TRIGGER no_room BEFORE UPDATE ON setting BEGIN SELECT RAISE(ABORT, 'no room'); END;
         CREATE TRIGGER no_room_either BEFORE INSERT ON setting BEGIN SELECT RAISE(ABORT, 'no room'); END`
      : `CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
         CREATE TRIGGER no_room BEFORE UPDATE ON setting FOR EACH ROW EXECUTE FUNCTION no_room()`,
  )
  await until('it is not ready', async () => (await status('/readyz')) === 503)
  assert.equal(await status('/healthz'), 200)
  await changeDatabase(
    gateway,
    onSqlite ? 'DROP TRIGGER no_room; DROP TRIGGER no_room_either' : 'DROP TRIGGER no_room ON setting',
  )
  await until('it is ready', async () => (await status('/readyz')) === 200)
})

test('those who ask at once, or soon after, whether something can be written share one write', async () => {
  let nowMs = 1_000
  let writes = 0
  let gate = Promise.withResolvers<void>()
  const write = () => {
    writes += 1
    return gate.promise
  }
  const canWrite = createWriteProbe(write, { nowMs: () => 0, monotonicMs: () => nowMs })
  const asked = [canWrite(), canWrite()]
  nowMs += 10 * READY_PROBE_MS
  asked.push(canWrite())
  assert.equal(writes, 1, 'however long it takes')
  gate.resolve()
  assert.deepEqual(await Promise.all(asked), [true, true, true])
  nowMs += READY_PROBE_MS - 1
  assert.equal(await canWrite(), true)
  assert.equal(writes, 1)

  gate = Promise.withResolvers()
  gate.reject(new Error('the disk is full'))
  nowMs += 1
  assert.deepEqual(await Promise.all([canWrite(), canWrite()]), [false, false])
  assert.equal(await canWrite(), false)
  assert.equal(writes, 2)
  nowMs += READY_PROBE_MS
  gate = Promise.withResolvers()
  gate.resolve()
  assert.equal(await canWrite(), true)
  assert.equal(writes, 3)
})

test('an admin key cannot call models, and is refused as such', async () => {
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 401)
  assert.match(await response.text(), /admin key/)
})
