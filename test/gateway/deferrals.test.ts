import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createDeferrals, type DeferralParts } from '../../src/gateway/deferrals.ts'
import { KeyShare } from '../../src/gateway/key-shares.ts'
import { openUpstream } from '../../src/http/upstream-pool.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { DeferredObject } from '../../src/ledger/deferred.ts'

const log = createLog('silent')

/** An upstream that answers as told, and deferrals over a store of which `left` is due and every response is open. */
async function bench(t: TestContext, answer: (reply: ServerResponse, request: IncomingMessage) => void) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, reply) => {
    requests.push(request)
    answer(reply, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const upstream = openUpstream(
    { url: new URL(`http://127.0.0.1:${port}/v1`), key: new Secret('provider') },
    log,
  )
  let left: DeferredObject[] = []
  let due = ''
  let claimed: readonly string[] = []
  const postponed = Promise.withResolvers<number>()
  const store = {
    hasDeferred: async () => left.length > 0,
    countDeferred: async () => left.length,
    async claimDeferred(_holder: string, surfaces: readonly string[]) {
      claimed = surfaces
      return left.splice(0)
    },
    async postponeDeferred({ objectId }: DeferredObject, inMs: number) {
      if (objectId === due) postponed.resolve(inMs)
    },
    listDeferred: async (_surface: unknown, path: string) => [responseAt(path)],
  }
  const parts = { store, upstreams: { chat: upstream, messages: null }, clock: systemClock, log }
  const deferrals = createDeferrals(parts as unknown as DeferralParts)
  t.after(async () => {
    left = []
    // Questions that a test leaves without an answer would be waited for.
    server.close()
    server.closeAllConnections()
    await deferrals.stop()
    upstream.pool.destroy()
  })
  /** Makes an object due, and resolves with the pause after the poll of it. */
  async function pollFor(object: DeferredObject): Promise<number> {
    left = [object]
    due = object.objectId
    deferrals.start()
    return await postponed.promise
  }
  return { deferrals, requests, pollFor, claimed: () => claimed }
}

function responseAt(path: string, more: Partial<DeferredObject> = {}): DeferredObject {
  return {
    ...{ surface: 'chat', objectId: path.slice('/v1/responses/'.length), kind: 'response', path, polls: 0 },
    call: { requestId: 'req_1', startedAtMs: systemClock.nowMs() },
    ...more,
  } as DeferredObject
}

/** One object that is due, and the pause after it was asked for. */
async function asked(
  t: TestContext,
  answer: (reply: ServerResponse) => void,
  object: Partial<DeferredObject> = {},
) {
  const { pollFor, requests, claimed } = await bench(t, answer)
  return { inMs: await pollFor(responseAt('/v1/responses/resp_1', object)), requests, claimed }
}

const unfinished = (reply: ServerResponse) =>
  reply.setHeader('content-type', 'application/json').end('{"id":"resp_1","status":"in_progress"}')

test('an object that is not final is asked for again after twice as long each time, up to the longest pause', async (t) => {
  for (const [polls, inMs] of [
    [0, 2_000],
    [3, 16_000],
    [30, 30_000],
  ] as const)
    assert.equal((await asked(t, unfinished, { polls })).inMs, inMs)
})

test('an upstream that says when to come back is not asked before', async (t) => {
  const busy = (reply: ServerResponse) => reply.writeHead(429, { 'retry-after': '120' }).end('{}')
  assert.equal((await asked(t, busy)).inMs, 120_000)
})

test('an upstream that fails, answers garbage, breaks off or knows nothing is asked again later, and nothing is given up', async (t) => {
  const answers: ((reply: ServerResponse) => void)[] = [
    (reply) => reply.writeHead(500).end('no'),
    // Upstream may show an object to a GET a moment after it has answered the POST.
    (reply) => reply.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{}}'),
    (reply) => reply.setHeader('content-type', 'application/json').end('{"id":'),
    (reply) => reply.socket?.destroy(),
    (reply) => reply.writeHead(302, { location: 'http://other.example/' }).end(),
  ]
  for (const answer of answers) assert.equal((await asked(t, answer)).inMs, 2_000)
})

test('the question carries the configured key and nothing of a client, and is for surfaces that are configured', async (t) => {
  const { requests, claimed } = await asked(t, unfinished)
  assert.deepEqual(claimed(), ['chat'])
  const [request] = requests
  assert.equal(request?.url, '/v1/responses/resp_1')
  const { host: _host, connection: _connection, ...headers } = request?.headers ?? {}
  assert.deepEqual(headers, {
    authorization: 'Bearer provider',
    accept: '*/*',
    'accept-encoding': 'identity',
  })
})

const unknown = (reply: ServerResponse) =>
  reply.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{}}')

test('an upstream that cannot cancel has the object all the same, and it is not deleted unpaid', async (t) => {
  const answer = (reply: ServerResponse, { method }: IncomingMessage) =>
    method === 'POST' ? unknown(reply) : unfinished(reply)
  const { deferrals } = await bench(t, answer)
  assert.equal(await deferrals.beforeDelete('chat', '/v1/responses/resp_1', new KeyShare('a')), false)
})

test('one deletion of a key is asked for at a time, and those of other keys beside it', async (t) => {
  const waiting = Promise.withResolvers<ServerResponse>()
  const answer = (reply: ServerResponse, { url }: IncomingMessage) =>
    url?.endsWith('/resp_slow') ? waiting.resolve(reply) : unknown(reply)
  const { deferrals, requests } = await bench(t, answer)
  const [one, other] = [new KeyShare('one'), new KeyShare('other')]
  const slow = deferrals.beforeDelete('chat', '/v1/responses/resp_slow', one)
  const next = deferrals.beforeDelete('chat', '/v1/responses/resp_next', one)
  const reply = await waiting.promise
  assert.equal(await deferrals.beforeDelete('chat', '/v1/responses/resp_other', other), true)
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['/v1/responses/resp_slow', '/v1/responses/resp_other'],
  )
  unknown(reply)
  assert.deepEqual(await Promise.all([slow, next]), [true, true])
})

test('a key that has left with a deletion under way waits for it when it comes again', async (t) => {
  const waiting = Promise.withResolvers<ServerResponse>()
  const answer = (reply: ServerResponse, { url }: IncomingMessage) =>
    url?.endsWith('/resp_slow') ? waiting.resolve(reply) : unknown(reply)
  const { deferrals, requests } = await bench(t, answer)
  const slow = deferrals.beforeDelete('chat', '/v1/responses/resp_slow', new KeyShare('one'))
  const reply = await waiting.promise
  const next = deferrals.beforeDelete('chat', '/v1/responses/resp_next', new KeyShare('one'))
  await deferrals.beforeDelete('chat', '/v1/responses/resp_other', new KeyShare('other'))
  assert.deepEqual(
    requests.map(({ url }) => url),
    ['/v1/responses/resp_slow', '/v1/responses/resp_other'],
  )
  unknown(reply)
  assert.deepEqual(await Promise.all([slow, next]), [true, true])
})

test('a deletion that can take no object away waits for no other', async (t) => {
  const waiting = Promise.withResolvers<ServerResponse>()
  const { deferrals } = await bench(t, (reply) => waiting.resolve(reply))
  const share = new KeyShare('one')
  const slow = deferrals.beforeDelete('chat', '/v1/responses/resp_slow', share)
  const reply = await waiting.promise
  assert.equal(await deferrals.beforeDelete('chat', '/v1/assistants/asst_1', share), true)
  unknown(reply)
  assert.equal(await slow, true)
})

test('however many deletions wait for upstream, objects that are due are asked for', async (t) => {
  const keys = 8
  const { promise: allWait, resolve } = Promise.withResolvers<void>()
  let waiting = 0
  const { deferrals, pollFor } = await bench(t, (reply, { url }) => {
    if (url?.endsWith('/resp_due')) unfinished(reply)
    else if (++waiting === keys) resolve()
  })
  for (let i = 0; i < keys; i++)
    void deferrals.beforeDelete('chat', `/v1/responses/resp_${i}`, new KeyShare(`${i}`))
  await allWait
  assert.equal(await pollFor(responseAt('/v1/responses/resp_due')), 2_000)
})
