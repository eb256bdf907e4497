import assert from 'node:assert/strict'
import pg from 'pg'
import { openDatabaseAt } from '../store/postgres-under-test.ts'
import { withDeadline } from '../support/deadline.ts'
import type { GatedCall } from '../support/gated-upstream.ts'
import { sumOf } from '../support/open-metrics.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { NANOS_PER_TOKEN } from '../support/upstream-answer.ts'
import { Cluster } from './cluster.ts'
import { RestartablePostgres } from './restartable-postgres.ts'
import { type ClientCall, type ClientReply, closeConnections, expectedBytes, sendCall } from './send-call.ts'

let server: RestartablePostgres
let cluster: Cluster
before(async () => {
  server = await RestartablePostgres.start()
  cluster = await Cluster.start([{}, {}], openDatabaseAt(server.url))
})
after(async () => {
  await cluster.close()
  await closeConnections()
  await server.close()
})

/** How long a test waits for a refusal that is promised within 2 s, on a busy machine. */
const REFUSED_WITHIN_MS = 15_000
const TOKENS = 40

interface Trouble {
  begin(): Promise<void>
  end(): Promise<void>
}

/** Running calls finish and settle later; new calls are refused; afterwards everything works again. */
function troubleTest(sentence: string, { begin, end }: Trouble, meanwhile = async () => {}): void {
  test(`${sentence}: new calls are refused, and running ones finish and settle later`, async () => {
    const { id, key } = await cluster.createKey()
    const send = (call: Partial<ClientCall>) => {
      const whole: ClientCall = { name: 'call', key, tokens: TOKENS, ...call }
      return { call: whole, reply: sendCall(cluster.node(0).url, whole) }
    }
    const running: ReturnType<typeof send>[] = []
    const gated: GatedCall[] = []
    for (const [name, surface, stream] of [
      ['gate a stream', 'messages', true],
      ['gate a stream of chat', 'chat', true],
      ['gate an answer', 'messages', false],
    ] as const) {
      running.push(send({ name, surface, stream }))
      gated.push(await cluster.upstream.next())
    }
    gated[0]?.begin()

    await begin()
    try {
      await Promise.all(
        (['messages', 'chat'] as const).flatMap((surface) =>
          [true, false].map(async (stream) => {
            const { reply } = send({ name: `refused ${surface} ${stream}`, surface, stream })
            assertUnavailable(await withDeadline(reply, () => 'no answer', REFUSED_WITHIN_MS), surface)
          }),
        ),
      )
      assertNothingSent()
      await meanwhile()
      for (const call of gated) call.finish()
      for (const { call, reply } of running) {
        const { status, text } = await reply
        assert.equal(status, 200)
        assert.equal(text, expectedBytes(call))
      }
    } finally {
      await end()
    }

    await until('the calls that ran are settled', async () => {
      const calls = await cluster.callsOf(id)
      return running.every(({ call }) => calls.get(call.name)?.['state'] === 'settled')
    })
    const calls = await cluster.callsOf(id)
    for (const { call } of running) {
      assert.equal(calls.get(call.name)?.['cost_nanos'], BigInt(TOKENS) * NANOS_PER_TOKEN)
    }
    for (const node of cluster.nodes) await until('a node serves again', () => serves(node.url, key))
    await until('nothing is held', async () => {
      const [account] = await cluster.database.query('SELECT held_nanos FROM account')
      return account?.['held_nanos'] === 0n
    })
    assertNothingSent()
    await cluster.assertBalanced()
  })
}

let again = 0

async function serves(url: string, key: string): Promise<boolean> {
  return (await sendCall(url, { name: `again ${again++}`, key })).status === 200
}

function assertNothingSent(): void {
  const sent = cluster.upstream.names.filter((name) => name.startsWith('refused'))
  assert.deepEqual(sent, [], 'a refused message was sent')
}

function assertUnavailable({ status, text, header }: ClientReply, surface: 'messages' | 'chat'): void {
  assert.equal(status, 503, text)
  const { type, error, request_id } = JSON.parse(text) as {
    type?: string
    error: { type: string; code: string }
    request_id?: string
  }
  assert.equal(error.code, 'store_unavailable')
  assert.match(header('retry-after') ?? '', /^\d+$/)
  if (surface === 'chat') {
    assert.equal(error.type, 'server_error')
    return
  }
  assert.equal(type, 'error')
  assert.equal(error.type, 'api_error')
  assert.equal(request_id, header('x-svc-request-id'))
}

troubleTest(
  'while one node is cut off from the database',
  { begin: async () => cluster.node(0).wire.mute(), end: async () => cluster.node(0).wire.heal() },
  async () => {
    const { key } = await cluster.createKey({}, 1)
    assert.ok(await serves(cluster.node(1).url, key), 'the other node has no trouble')
  },
)

troubleTest('while the database is paused', {
  begin: () => server.pause(),
  end: () => server.resume(),
})

troubleTest('while the database is down, and after its recovery', {
  begin: () => server.stopAtOnce(),
  end: () => server.startAgain(),
})

const crowd: pg.Client[] = []

/** Takes every connection of the server. A connection being opened has no row, but counts. */
async function takeAllConnections(): Promise<void> {
  for (;;) {
    const client = new pg.Client(server.url)
    client.on('error', () => {})
    const isIn = await client.connect().then(
      () => true,
      () => false,
    )
    if (isIn) crowd.push(client)
    if (isIn) continue
    const nodes = "backend_type = 'client backend' AND application_name = 'tollgate'"
    await crowd[0]?.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${nodes}`)
    const counted = await crowd[0]?.query(
      `SELECT current_setting('max_connections')::int = count(*) AS full
       FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'tollgate'`,
    )
    if (counted?.rows[0]?.full === true) return
  }
}

troubleTest('while the database has no free connection', {
  begin: takeAllConnections,
  async end() {
    await Promise.all(crowd.splice(0).map((client) => client.end()))
  },
})

test('calls that a killed node finished during an outage of the database settle once after its restart', async () => {
  const { id, key } = await cluster.createKey({}, 1)
  const calls: ClientCall[] = [
    { name: 'gate killed later', key, stream: true, tokens: TOKENS },
    { name: 'gate killed later, too', key, surface: 'chat', tokens: TOKENS },
  ]
  const node = cluster.node(0)
  const gated: GatedCall[] = []
  const replies = []
  for (const call of calls) {
    replies.push(sendCall(node.url, call))
    gated.push(await cluster.upstream.next())
  }
  node.wire.mute()
  for (const call of gated) call.finish()
  const texts = (await Promise.all(replies)).map(({ text }) => text)
  assert.deepEqual(texts, calls.map(expectedBytes))
  await node.kill()
  // Bytes on the connection are lost with the node.
  node.wire.cut()
  node.wire.heal()
  const states = async () => [...(await cluster.callsOf(id)).values()].map((call) => call['state'])
  // On a busy machine the other node may have fenced this one and interrupted its calls.
  assert.ok(!(await states()).includes('settled'))

  await node.start()
  await until('both are settled', async () => (await states()).every((state) => state === 'settled'))
  for (const call of (await cluster.callsOf(id)).values()) {
    assert.equal(call['cost_nanos'], BigInt(TOKENS) * NANOS_PER_TOKEN)
  }
  // The process that made the calls has counted neither of them.
  await until('both are counted', async () => sumOf(await cluster.scrape(0), 'tollgate_calls_total') === 2)
  const counted = await cluster.scrape(0)
  for (const surface of ['messages', 'chat']) {
    const cost = Number(BigInt(TOKENS) * NANOS_PER_TOKEN) / 1e9
    assert.equal(sumOf(counted, 'tollgate_cost_usd_total', { surface }), cost)
  }
  await cluster.assertBalanced()
  await node.kill()
  await node.start()
  assert.ok(await serves(node.url, key))
  await cluster.assertBalanced()
})
