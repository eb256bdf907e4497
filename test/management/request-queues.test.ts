import assert from 'node:assert/strict'
import { sendWhole } from '../../src/http/exchange.ts'
import { valuesOf } from '../../src/http/raw-headers.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { RequestQueues, RUNNING_MAX } from '../../src/management/request-queues.ts'
import type { Management } from '../../src/management/route.ts'
import { handleOwned } from '../../src/management/router.ts'
import { test } from '../support/suite.ts'

test('a queue has a limit of running and waiting requests, which do not delay those of other queues', async () => {
  const queues = new RequestQueues()
  const gate = Promise.withResolvers<void>()
  const running: string[] = []
  const askAs = (key: string) => (_: unknown) =>
    queues.run([key, 'account'], async () => {
      running.push(key)
      await gate.promise
      return 'answer'
    })
  const all = [...Array.from({ length: 1_500 }, askAs('busy')), ...Array.from({ length: 9 }, askAs('second'))]
  assert.equal(await queues.run(['third', 'another account'], async () => 'at once'), 'at once')
  assert.deepEqual(running, Array(RUNNING_MAX).fill('busy'))
  gate.resolve()
  const answers = await Promise.all(all)
  assert.equal(answers.filter((answer) => answer === null).length, 500 - RUNNING_MAX)
  // The keys of the account take turns.
  assert.ok(running.indexOf('second') <= 2 * RUNNING_MAX, String(running.indexOf('second')))
  assert.equal(await askAs('busy')(null), 'answer')
})

for (const method of ['GET', 'DELETE'])
  test(`the router limits ${method} requests per account, so that one account does not delay another`, async () => {
    const running: string[] = []
    const [full, another, arrived, end] = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    const work = async (_account: string, id: string) => {
      running.push(id)
      if (running.length === RUNNING_MAX) full?.resolve()
      if (id === 'other') another?.resolve()
      await end?.promise
      return null
    }
    const store = {
      lookUpKey: async (digest: Buffer) => {
        const keyId = digest.toString()
        return { kind: 'admin_key', keyId, name: '', role: 'admin', accountId: keyId.slice(0, 5) }
      },
      ...{ getWebhook: work, deleteWebhook: work },
    }
    const webhooks = { wake: () => {} }
    const parts = { clock: systemClock, store, webhooks, isSecure: () => false, metricsPublic: false }
    const management = parts as unknown as Management
    const broken = { status: 500, headers: ['content-length', '0'], body: Buffer.alloc(0) }
    let requests = 0
    const server = createHttpServer({
      clock: systemClock,
      nextUlid: createUlidSource(systemClock),
      names: headerNames('svc'),
      async onExchange(exchange) {
        const [caller = ''] = valuesOf(exchange.headers, 'x-caller')
        const target = { path: `/gateway/v1/webhooks/${caller}`, query: '' }
        const done = handleOwned(exchange, target, { kind: 'key', digest: Buffer.from(caller) }, management)
        if (++requests === 20) arrived?.resolve()
        await done.catch(() => sendWhole(exchange, broken))
      },
      shapeBroken: () => broken,
    })
    const { port } = await server.listen('127.0.0.1', 0)
    const ask = (caller: string) =>
      fetch(`http://127.0.0.1:${port}/`, { method, headers: { 'x-caller': caller } })
    const asked = Array.from({ length: 20 }, (_, n) => ask(`busy ${n % 2}`))
    await arrived?.promise
    await full?.promise
    asked.push(ask('other'))
    await another?.promise
    assert.deepEqual(
      running.map((id) => id.slice(0, 5)),
      [...Array(RUNNING_MAX).fill('busy '), 'other'],
    )
    end?.resolve()
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, 404)
    await server.drain(0)
  })
