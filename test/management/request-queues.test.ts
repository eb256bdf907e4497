import assert from 'node:assert/strict'
import { sendWhole } from '../../src/http/exchange.ts'
import { valuesOf } from '../../src/http/raw-headers.ts'
import { HttpServer } from '../../src/http/server.ts'
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

for (const [method, path, status] of [
  ['GET', '/gateway/v1/webhooks/wh', 404],
  ['DELETE', '/gateway/v1/webhooks/wh', 404],
  ['GET', '/gateway/v1/requests/{id}', 404],
  ['POST', '/gateway/v1/session', 401],
] as const)
  test(`${method} ${path} is limited per account, so that one account does not delay another`, async () => {
    const running: string[] = []
    const [full, another, arrived, end] = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    const work = async (session: string | { readonly keyId: string }) => {
      const accountId = (typeof session === 'string' ? session : session.keyId).slice(0, 5)
      running.push(accountId)
      if (running.length === RUNNING_MAX) full?.resolve()
      if (accountId === 'other') another?.resolve()
      await end?.promise
      return null
    }
    const store = {
      lookUpKey: async (digest: Buffer) => {
        const keyId = digest.toString()
        return { kind: 'admin_key', keyId, name: '', role: 'admin', accountId: keyId.slice(0, 5) }
      },
      ...{ getWebhook: work, deleteWebhook: work, openSession: work, getCall: work },
    }
    const parts = { clock: systemClock, store, webhooks: { wake() {} }, digestKey: Buffer.from }
    const settings = { isSecure: () => false, metricsPublic: false, bodyTimes: { idleTimeoutMs: 60_000 } }
    const calls = { waitingCalls: { find: () => null }, refusedCalls: { async written() {} } }
    const settlements = { wait: () => ({ stop() {} }) }
    const management = { ...parts, ...settings, ...calls, settlements } as unknown as Management
    const broken = { status: 500, headers: ['content-length', '0'], body: Buffer.alloc(0) }
    let received = 0
    const server = new HttpServer({
      clock: systemClock,
      nextUlid: createUlidSource(systemClock),
      names: headerNames('svc'),
      async onExchange(exchange) {
        const [caller = ''] = valuesOf(exchange.headers, 'x-caller')
        const credential = { kind: 'key', digest: Buffer.from(caller) } as const
        const target = { path: path.replace('{id}', caller), query: '' }
        const done = handleOwned(exchange, target, credential, management)
        if (++received === 20) arrived?.resolve()
        await done.catch(() => sendWhole(exchange, broken))
      },
      shapeBroken: () => broken,
    })
    const { port } = await server.listen('127.0.0.1', 0)
    const ask = (caller: string) => {
      const body = method === 'POST' ? { body: JSON.stringify({ admin_key: caller }) } : {}
      return fetch(`http://127.0.0.1:${port}/`, { method, headers: { 'x-caller': caller }, ...body })
    }
    const asked = Array.from({ length: 20 }, (_, n) => ask(`busy ${n % 2}`))
    await Promise.all([arrived?.promise, full?.promise])
    asked.push(ask('other'))
    await another?.promise
    assert.deepEqual(running, [...Array(RUNNING_MAX).fill('busy '), 'other'])
    end?.resolve()
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, status)
    await server.drain(0)
  })
