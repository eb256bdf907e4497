import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { openDatabaseReader } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { WebhookGateway } from './webhook-gateway.ts'

test('the secret of a webhook is not in the log, the database or any later response', async () => {
  let logged = ''
  const write = (line: string) => {
    logged += line
  }
  const log = pino({ level: 'trace' }, { write })
  const hooked = await WebhookGateway.start({ log })
  try {
    const subscription = await hooked.subscribe(['*'], { description: 'canary' })
    const { receiver, path } = subscription
    const { secret: rotated } = await hooked.gateway.manage('POST', `${path}/rotate-secret`)
    receiver.reply = () => 500
    await hooked.gateway.manage('POST', `${path}/test`)
    await until('a failure is logged', async () => logged.includes('will be retried'))
    const answers = [
      await hooked.gateway.manage('GET', '/gateway/v1/webhooks'),
      await hooked.gateway.manage('GET', path),
      await hooked.gateway.manage('GET', `${path}/deliveries`),
      await hooked.gateway.manage('PATCH', path, { enabled: false }),
    ].map((answer) => JSON.stringify(answer))
    const database = openDatabaseReader(hooked.gateway)
    const rows = [
      ...(await database.read('SELECT * FROM webhook')),
      ...(await database.read('SELECT * FROM event')),
    ]
    await database.close()
    const kept = rows
      .flatMap((row) => Object.values(row))
      .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)))
    assert.ok(kept.includes('canary'), 'the query returns the stored row')
    const files = readdirSync(hooked.gateway.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    for (const secret of [subscription.secret, String(rotated)]) {
      const plain = secret.slice('whsec_'.length)
      const bytes = Buffer.from(plain, 'base64').toString('latin1')
      for (const text of [logged, ...answers, ...kept, ...files])
        assert.ok(!text.includes(plain) && !text.includes(bytes))
    }
    assert.ok(!logged.includes(receiver.url), 'the address of an endpoint may be a secret by itself')
  } finally {
    await hooked.close()
  }
})
