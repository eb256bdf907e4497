import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
import { idOf, WEBHOOKS } from '../webhooks/webhook-gateway.ts'
import { Cluster } from './cluster.ts'

const [KILLED, WELL] = [0, 1]
const dir = mkdtempSync(join(tmpdir(), 'tollgate-webhooks-'))
let cluster: Cluster
let receiver: WebhookReceiver

before(async () => {
  const TOLLGATE_CONFIG = join(dir, 'tollgate.json')
  writeFileSync(TOLLGATE_CONFIG, '{"webhooks":{"allow_private":true}}')
  cluster = await Cluster.start([{ TOLLGATE_CONFIG }, { TOLLGATE_CONFIG }])
  receiver = await WebhookReceiver.start()
})
after(async () => {
  await receiver.close()
  await cluster.close()
  await stopPostgres()
  rmSync(dir, { recursive: true, force: true })
})

test('if the delivering node is killed, another node delivers', async () => {
  const { id } = await cluster.manage(WELL, 'POST', WEBHOOKS, { url: receiver.url, events: ['*'] })
  // WELL is killed first, so that KILLED claims the delivery.
  await cluster.node(WELL).kill()
  receiver.reply = () => 'silence'
  await cluster.createKey({ name: 'delivered' }, KILLED)
  await receiver.until((messages) => messages.length === 1)
  await cluster.node(WELL).start()
  await cluster.node(KILLED).kill()
  // The claim of the killed node would last for half a minute.
  await cluster.database.query('UPDATE webhook_delivery SET next_attempt_at_ms = 0')

  receiver.reply = () => 204
  const messages = await receiver.until((came) => came.length === 2)
  assert.equal(new Set(messages.map(idOf)).size, 1)
  const deliveries = async () => {
    const { data } = await cluster.manage(WELL, 'GET', `${WEBHOOKS}/${id}/deliveries`)
    return data as { status: string; event_id: string }[]
  }
  await until('it is recorded', async () => (await deliveries())[0]?.status === 'succeeded')
  assert.equal((await deliveries()).length, 1)

  await cluster.createKey({ name: 'delivered by the one that is left' }, WELL)
  await receiver.until((came) => came.length === 3)
})
