import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { changeDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'

const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
closeAfter(gateway)

for (const path of ['/healthz', '/readyz']) {
  test(`GET ${path} 200: without a key`, async () => {
    const response = await fetch(gateway.url + path)
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { status: 'ok' })
    assert.match(String(response.headers.get('x-svc-request-id')), /^req_/)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    assert.equal((await fetch(gateway.url + path, { method: 'POST' })).status, 405)
  })
}

test('GET /readyz 503: the store cannot write, while /healthz stays 200', async () => {
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

test('an admin key is refused on proxied paths', async () => {
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.equal(response.status, 401)
  assert.match(await response.text(), /admin key/)
})
