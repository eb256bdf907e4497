import assert from 'node:assert/strict'
import { withDeadline } from '../support/deadline.ts'
import { fillLog } from '../support/fill-log.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { connect, type RawConnection } from '../support/raw-client.ts'
import { changeDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { startLogServer } from './log-server.ts'

/** More rows than sockets hold: 43 MB as NDJSON. */
const ROWS = 50_000

async function beginExport(gateway: TestGateway, format: string) {
  const { id } = await gateway.createKey('busy')
  await fillLog(gateway, id, ROWS, Date.parse('2026-01-01T00:00:00Z'))
  const connection = await connect(gateway)
  const request = message(`GET /v1/keys/${id}/requests?format=${format} HTTP/1.1`, [
    'Host: h',
    `Authorization: Bearer ${gateway.adminKey}`,
  ])
  const reading = connection.request(request)
  await connection.reached(10_000)
  connection.pause()
  return { connection, reading }
}

async function assertCut(connection: RawConnection, reading: ReturnType<RawConnection['request']>) {
  connection.resume()
  const { status, body, ended } = await reading
  assert.deepEqual([status, ended], [200, 'cut'])
  const lines = body.toString().split('\n').length - 1
  assert.ok(lines > 0 && lines < ROWS, `${lines} lines`)
}

test('an export that fails half way is cut, and cannot be taken for whole', async () => {
  const gateway = await startGateway()
  const { connection, reading } = await beginExport(gateway, 'csv')
  await changeDatabase(gateway, 'ALTER TABLE call RENAME TO gone')
  await assertCut(connection, reading)
  await gateway.close()
})

test('an export that the end of the service cuts off cannot be taken for whole', async () => {
  const gateway = await startGateway()
  const { connection, reading } = await beginExport(gateway, 'ndjson')
  const closed = gateway.close()
  await assertCut(connection, reading)
  await closed
})

test('a client that leaves half way ends the export: the store is asked no more', async () => {
  const log = await startLogServer()
  const connection = await connect(log)
  const reading = connection.request(message('GET /gateway/v1/requests?format=ndjson HTTP/1.1', ['Host: h']))
  reading.catch(() => undefined)
  await connection.reached(100_000)
  connection.leave()
  await withDeadline(log.exchangesEnded(1), () => `still going after ${log.looks()} looks`)
  const looks = log.looks()
  // When this request is answered, looks of the export that were under way have been counted.
  await fetch(`${log.url}/gateway/v1/requests?limit=1`).then((answer) => answer.arrayBuffer())
  assert.equal(log.looks(), looks + 1)
  await log.close()
})

test('a client that leaves while nothing matches ends the export too', async () => {
  const log = await startLogServer()
  const connection = await connect(log)
  const request = 'GET /gateway/v1/requests?format=csv&model=none HTTP/1.1'
  const reading = connection.request(message(request, ['Host: h']))
  reading.catch(() => undefined)
  await connection.received('upstream_request_id')
  connection.leave()
  await withDeadline(log.exchangesEnded(1), () => `still going after ${log.looks()} looks`)
  await log.close()
})

test('a client that leaves while a page is looked for ends the looking', async () => {
  const log = await startLogServer({ isSlow: true })
  const connection = await connect(log)
  const reading = connection.request(message('GET /gateway/v1/requests?model=none HTTP/1.1', ['Host: h']))
  reading.catch(() => undefined)
  await withDeadline(log.looked(1), () => 'nobody looked')
  connection.leave()
  await withDeadline(log.exchangesEnded(1), () => `still going after ${log.looks()} looks`)
  assert.equal(log.looks(), 1)
  await log.close()
})

for (const format of ['json', 'ndjson', 'csv']) {
  test(`a store that is away from the beginning is reported as such, for ${format}`, async () => {
    const log = await startLogServer({ isAway: true })
    const answer = await fetch(`${log.url}/gateway/v1/requests?format=${format}`)
    assert.equal(answer.status, 503)
    await answer.arrayBuffer()
    await log.close()
  })
}
