import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTollgate } from '../../src/app/main.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { startShownUpstream } from '../billing/shown-upstream.ts'
import { test } from '../support/suite.ts'
import { createTestDatabase, databaseVariable } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'

test('in maintenance own paths are served, without calls, polls or webhook deliveries', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-maintenance-'))
  const place = await createTestDatabase()
  const receiver = await WebhookReceiver.start()
  const upstream = await startShownUpstream()
  const adminKey = 'an-admin-key-that-is-long-enough-for-it'
  const config = readConfig({
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA_DIR: dataDir,
    TOLLGATE_ADMIN_KEY: adminKey,
    TOLLGATE_CHAT_URL: upstream.urls.chatUrl,
    ...databaseVariable(place),
  })
  let aheadMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const start = (maintenance: boolean) =>
    startTollgate(
      { ...config, drainMs: 0, webhooksAllowPrivate: true },
      { log: createLog('silent'), clock, maintenance, onFatal: (error) => assert.fail(error) },
    )
  const ask = async (port: number, method: string, path: string, body?: object, key = adminKey) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { code: response.status, ...((await response.json()) as { key: string }) }
  }
  try {
    const object = { id: 'resp_open', object: 'response', status: 'in_progress', model: 'gpt-6-luna' }
    upstream.shows('POST /v1/responses', object)
    upstream.shows('GET /v1/responses/resp_open', object)
    const poll = 'GET /v1/responses/resp_open'
    const create = { model: 'gpt-6-luna', input: 'Hi', background: true }
    const serving = await start(false)
    const { key } = await ask(serving.port, 'POST', '/v1/keys', { name: 'k' })
    assert.equal((await ask(serving.port, 'POST', '/v1/responses', create, key)).code, 200)
    await ask(serving.port, 'POST', '/gateway/v1/webhooks', { url: receiver.url, events: ['*'] })
    await serving.stop()
    assert.equal(upstream.wasAsked(poll), false)

    // The object is due, and each new key is an event.
    aheadMs = 3_600_000
    const maintained = await start(true)
    const said: number[] = []
    for (let i = 0; i < 50; i++)
      said.push((await ask(maintained.port, 'POST', '/v1/keys', { name: 'k' })).code)
    assert.deepEqual(new Set(said), new Set([201]))
    for (const [method, path] of [
      ['POST', '/v1/responses'],
      ['GET', '/v1/models'],
      ['POST', '/v1/messages'],
    ] as const)
      assert.equal((await ask(maintained.port, method, path, undefined, key)).code, 503, path)
    await maintained.stop()
    assert.equal(upstream.wasAsked(poll), false)
    assert.equal(receiver.messages.length, 0)

    const again = await start(false)
    await until('the object is polled', async () => upstream.wasAsked(poll))
    await receiver.until((messages) => messages.length >= 50)
    await again.stop()
  } finally {
    await receiver.close()
    await upstream.close()
    await place.remove()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
