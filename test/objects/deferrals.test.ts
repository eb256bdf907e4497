import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { Hold } from '../../src/calls/hold.ts'
import { openUpstream } from '../../src/http/upstream-connection.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { CallClosing } from '../../src/ledger/call.ts'
import { NOTHING_RECORDED } from '../../src/ledger/call-columns.ts'
import type { DeferredObject } from '../../src/ledger/deferred.ts'
import { type DeferralDependencies, Deferrals } from '../../src/objects/deferrals.ts'
import { test } from '../support/suite.ts'

const log = createLog('silent')

/** Polls one response of this age; resolves with the pause before the next poll. */
async function pollOnce(t: TestContext, answer: (reply: ServerResponse) => void, ageMs = 0) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, reply) => {
    requests.push(request)
    answer(reply)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const upstream = openUpstream(
    { url: new URL(`http://127.0.0.1:${port}/v1`), key: new Secret('provider') },
    log,
  )
  const call = { requestId: 'req_1', startedAtMs: systemClock.nowMs() - ageMs }
  const due = [{ surface: 'chat', scope: '', objectId: 'resp_1', kind: 'response', call } as DeferredObject]
  let claimed: readonly string[] = []
  const postponed = Promise.withResolvers<number>()
  const store = {
    async claimDeferred(surfaces: readonly string[]) {
      claimed = surfaces
      return due.splice(0)
    },
    async postponeDeferred(_object: DeferredObject, inMs: number) {
      postponed.resolve(inMs)
    },
  }
  const parts = {
    store,
    upstreams: { chat: upstream, messages: null },
    ownUpstreams: { isUsed: false },
    polls: true,
    clock: systemClock,
    log,
  }
  const deferrals = new Deferrals(parts as unknown as DeferralDependencies)
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await deferrals.stop()
    upstream.pool.destroy()
  })
  deferrals.start()
  return { inMs: await postponed.promise, requests, claimed }
}

const unfinished = (reply: ServerResponse) =>
  reply.setHeader('content-type', 'application/json').end('{"id":"resp_1","status":"in_progress"}')

test('the pause between polls grows with the age of the object, up to a maximum', async (t) => {
  for (const [ageMs, least, most] of [
    [0, 2_000, 2_000],
    [16_000, 16_000, 20_000],
    [3_600_000, 30_000, 30_000],
  ] as const) {
    const { inMs } = await pollOnce(t, unfinished, ageMs)
    assert.ok(inMs >= least && inMs <= most, `${ageMs}: ${inMs}`)
  }
})

test('an upstream that sends retry-after is not polled earlier', async (t) => {
  const busy = (reply: ServerResponse) => reply.writeHead(429, { 'retry-after': '120' }).end('{}')
  assert.equal((await pollOnce(t, busy)).inMs, 120_000)
})

test('an object is polled again after an error, garbage, a broken reply or a 404 shortly after its creation', async (t) => {
  const answers: ((reply: ServerResponse) => void)[] = [
    (reply) => reply.writeHead(500).end('no'),
    // Upstream may show an object to GET only a moment after it has answered the POST.
    (reply) => reply.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{}}'),
    (reply) => reply.setHeader('content-type', 'application/json').end('{"id":'),
    (reply) => reply.socket?.destroy(),
    (reply) => reply.writeHead(302, { location: 'http://other.example/' }).end(),
  ]
  for (const answer of answers) assert.equal((await pollOnce(t, answer)).inMs, 2_000)
})

test('a poll carries only the configured key, and goes only to configured surfaces', async (t) => {
  const { requests, claimed } = await pollOnce(t, unfinished)
  assert.deepEqual(claimed, ['chat'])
  const [request] = requests
  assert.equal(request?.url, '/v1/responses/resp_1')
  const { host: _host, connection: _connection, ...headers } = request?.headers ?? {}
  assert.deepEqual(headers, {
    authorization: 'Bearer provider',
    accept: '*/*',
    'accept-encoding': 'identity',
  })
})

test('without polling, a DELETE passes and closes its object as interrupted', async () => {
  const closed: string[] = []
  const call = { ...NOTHING_RECORDED, requestId: 'req_1', state: 'deferred', surface: 'chat' } as const
  const object: DeferredObject = { surface: 'chat', scope: '', objectId: 'resp_1', kind: 'response', call }
  const store = {
    findDeferred: async () => object,
    listOpenChildren: async () => [],
  }
  const outbox = {
    async settle({ requestId, state }: CallClosing) {
      closed.push(`${requestId} ${state}`)
      return { balanceNanos: 0n, applied: true }
    },
  }
  const parts = {
    store,
    outbox,
    upstreams: {},
    ownUpstreams: { isUsed: false },
    polls: false,
    clock: systemClock,
    log,
  }
  const deferrals = new Deferrals({
    ...parts,
    names: { redact: (text: string) => text },
  } as unknown as DeferralDependencies)
  assert.equal(await deferrals.refuseDelete('chat', '/v1/responses/resp_1', Buffer.alloc(32)), null)
  await deferrals.closeDeleted({
    ask: { surface: 'chat', path: '/v1/responses/resp_1' },
    scope: '',
  } as unknown as Hold)
  assert.deepEqual(closed, ['req_1 interrupted'])
})
