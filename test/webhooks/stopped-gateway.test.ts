import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTollgate } from '../../src/app/main.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { createLog } from '../../src/kernel/log.ts'
import { test } from '../support/suite.ts'
import { createTestDatabase, databaseVariable } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
import { idOf, WEBHOOKS } from './webhook-gateway.ts'

test('a delivery that runs when the gateway stops is sent again after the next start, as the same event', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-stopped-'))
  const place = await createTestDatabase()
  const receiver = await WebhookReceiver.start()
  const adminKey = 'an admin key that is long enough for it'
  const config = readConfig({
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA_DIR: dataDir,
    TOLLGATE_ADMIN_KEY: adminKey.replaceAll(' ', '-'),
    ...databaseVariable(place),
  })
  const start = () =>
    startTollgate(
      { ...config, drainMs: 0, webhooksAllowPrivate: true },
      { log: createLog('silent'), onFatal: (error) => assert.fail(error) },
    )
  const manage = async (port: number, method: string, path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${adminKey.replaceAll(' ', '-')}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    assert.ok(response.ok, `${method} ${path}: ${response.status}`)
    return (await response.json()) as { id: string; data: { status: string; attempts: number }[] }
  }
  try {
    receiver.reply = () => 'silence'
    const first = await start()
    const { id } = await manage(first.port, 'POST', WEBHOOKS, { url: receiver.url, events: ['*'] })
    await manage(first.port, 'POST', `${WEBHOOKS}/${id}/test`)
    await receiver.until((messages) => messages.length === 1)
    await first.stop()

    receiver.reply = () => 204
    const second = await start()
    const messages = await receiver.until((came) => came.length === 2)
    assert.equal(new Set(messages.map(idOf)).size, 1)
    const path = `${WEBHOOKS}/${id}/deliveries`
    await until(
      'it is recorded',
      async () => (await manage(second.port, 'GET', path)).data[0]?.status === 'succeeded',
    )
    assert.equal((await manage(second.port, 'GET', path)).data[0]?.attempts, 1)
    await second.stop()
  } finally {
    await receiver.close()
    await place.remove()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
