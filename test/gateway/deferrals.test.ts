import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createDeferrals, type DeferralParts } from '../../src/gateway/deferrals.ts'
import { openUpstream } from '../../src/http/upstream-pool.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { DeferredObject } from '../../src/ledger/deferred.ts'

const log = createLog('silent')

/** One object that is due, an upstream that answers as told, and the commands that the store gets. */
async function asked(
  t: TestContext,
  answer: (reply: ServerResponse) => void,
  object: Partial<DeferredObject> = {},
) {
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
  const due = {
    ...{ surface: 'chat', objectId: 'resp_1', kind: 'response', path: '/v1/responses/resp_1', polls: 0 },
    call: { requestId: 'req_1', startedAtMs: systemClock.nowMs() },
    ...object,
  } as DeferredObject
  let left = [due]
  let claimed: readonly string[] = []
  const postponed = Promise.withResolvers<number>()
  const store = {
    hasDeferred: async () => left.length > 0,
    countDeferred: async () => left.length,
    async claimDeferred(_holder: string, surfaces: readonly string[]) {
      claimed = surfaces
      return left.splice(0)
    },
    async postponeDeferred(_name: unknown, inMs: number) {
      postponed.resolve(inMs)
    },
  }
  const parts = { store, upstreams: { chat: upstream, messages: null }, clock: systemClock, log }
  const deferrals = createDeferrals(parts as unknown as DeferralParts)
  t.after(async () => {
    left = []
    await deferrals.stop()
    upstream.pool.destroy()
    server.closeAllConnections()
    server.close()
  })
  deferrals.start()
  return { inMs: await postponed.promise, requests, claimed: () => claimed }
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
    // Of a base URL that is wrong for some minutes, say.
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
