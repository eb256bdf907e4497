import assert from 'node:assert/strict'
import { sendWhole } from '../../src/http/exchange.ts'
import { valuesOf } from '../../src/http/raw-headers.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { ReadQueues } from '../../src/management/read-queues.ts'
import type { Management } from '../../src/management/route.ts'
import { handleOwned } from '../../src/management/router.ts'
import { test } from '../support/suite.ts'

test('a caller has a limit of running and waiting reads, which do not delay other callers', async () => {
  const queues = new ReadQueues()
  const gate = Promise.withResolvers<void>()
  let [running, most] = [0, 0]
  const read = async () => {
    running += 1
    most = Math.max(most, running)
    await gate.promise
    running -= 1
    return 'read'
  }
  const all = Array.from({ length: 1_500 }, () => queues.run('busy', read))
  assert.equal(await queues.run('other', async () => 'at once'), 'at once')
  assert.equal(running, 16)
  gate.resolve()
  const answers = await Promise.all(all)
  assert.deepEqual(
    [
      most,
      answers.filter((answer) => answer === 'read').length,
      answers.filter((answer) => answer === null).length,
    ],
    [16, 1_016, 484],
  )
  assert.equal(await queues.run('busy', read), 'read')
})

test('the router limits reads per key, so that one key does not delay another', async () => {
  const reading: string[] = []
  const [sixteen, another, arrived, end] = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const store = {
    lookUpKey: async (digest: Buffer) => {
      const keyId = digest.toString()
      return { kind: 'admin_key', keyId, name: '', role: 'operator', accountId: null }
    },
    async getWebhook(_account: string, id: string) {
      reading.push(id)
      if (reading.length === 16) sixteen?.resolve()
      if (id === 'other') another?.resolve()
      await end?.promise
      return null
    },
    hasAccount: async () => true,
  }
  const parts = { clock: systemClock, store, isSecure: () => false, metricsPublic: false }
  const management = parts as unknown as Management
  const broken = { status: 500, headers: ['content-length', '0'], body: Buffer.alloc(0) }
  let requests = 0
  const server = createHttpServer({
    clock: systemClock,
    nextUlid: createUlidSource(systemClock),
    names: headerNames('svc'),
    async onExchange(exchange) {
      const [caller = ''] = valuesOf(exchange.headers, 'x-caller')
      const target = { path: `/gateway/v1/webhooks/${caller}`, query: '?account=default' }
      const done = handleOwned(exchange, target, { kind: 'key', digest: Buffer.from(caller) }, management)
      requests += 1
      if (requests === 20) arrived?.resolve()
      await done.catch(() => sendWhole(exchange, broken))
    },
    shapeBroken: () => broken,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  const ask = (caller: string) => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-caller': caller } })
  const asked = Array.from({ length: 20 }, () => ask('busy'))
  await arrived?.promise
  await sixteen?.promise
  asked.push(ask('other'))
  await another?.promise
  assert.deepEqual(reading, [...Array.from({ length: 16 }, () => 'busy'), 'other'])
  end?.resolve()
  for (const answer of await Promise.all(asked)) assert.equal(answer.status, 404)
  await server.drain(0)
})
