import assert from 'node:assert/strict'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { NANOS_PER_TOKEN } from '../support/upstream-answer.ts'
import { Cluster } from './cluster.ts'
import { type ClientCall, closeConnections, expectedBytes, sendCall } from './send-call.ts'

/** The first node is killed, the second paused, the third cut off; the fourth fences them. */
const [KILLED, PAUSED, CUT_OFF, WELL] = [0, 1, 2, 3]
const TOKENS = 300

/** The promised wait of calls for room that a dead node holds. */
const GIVEN_UP_WITHIN_MS = 30_000

let cluster: Cluster
before(async () => {
  cluster = await Cluster.start([{}, {}, {}, {}])
})
after(async () => {
  await cluster.close()
  await closeConnections()
  await stopPostgres()
})

test('holds of nodes that died, were paused or were cut off are freed, and their late settlements count once', async () => {
  const { id, key } = await cluster.createKey()
  const states = async () => {
    const calls = [...(await cluster.callsOf(id))]
    return Object.fromEntries(calls.map(([name, call]) => [name, call['state']]))
  }
  const send = (node: number, call: Partial<ClientCall>) => {
    const whole: ClientCall = { name: 'call', key, tokens: TOKENS, ...call }
    return { call: whole, reply: sendCall(cluster.node(node).url, whole) }
  }
  const gated = new Map<string, { begin(): void; finish(): void }>()
  const takeGated = async () => {
    const call = await cluster.upstream.next()
    gated.set(call.name, call)
  }
  const killedCall = send(KILLED, { name: 'gate killed' })
  const lost = assert.rejects(killedCall.reply)
  await takeGated()
  const pausedCall = send(PAUSED, { name: 'gate paused', stream: true })
  await takeGated()
  const cutOffCall = send(CUT_OFF, { name: 'gate cut off', stream: true, surface: 'chat' })
  await takeGated()
  const registrations = await cluster.database.query('SELECT id FROM node WHERE fenced_at_ms IS NULL')
  assert.equal(registrations.length, 4)

  await cluster.node(KILLED).kill()
  await lost
  cluster.node(PAUSED).pause()
  cluster.node(CUT_OFF).wire.mute()
  // A client of a node that is cut off from its database notices nothing.
  gated.get('gate cut off')?.finish()
  assert.equal((await cutOffCall.reply).text, expectedBytes(cutOffCall.call))
  const early = Array.from({ length: 20 }, (_, i) => send(PAUSED, { name: `asked while paused ${i}` }).reply)

  await until(
    'the open calls of all three are interrupted',
    async () => Object.values(await states()).every((state) => state === 'interrupted'),
    { withinMs: GIVEN_UP_WITHIN_MS, everyMs: 100 },
  )
  await cluster.assertBalanced()
  const [month] = await cluster.database.query('SELECT * FROM budget WHERE id = $1', [
    id.replace('key_', 'bud_'),
  ])
  assert.ok(BigInt(String(month?.['lost_nanos'])) > 0n, 'the loss is shown')
  assert.equal((await send(WELL, { name: 'well' }).reply).status, 200)

  gated.get('gate paused')?.finish()
  const again = [PAUSED, CUT_OFF].flatMap((node) =>
    Array.from({ length: 5 }, async (_, i) => {
      let attempts = 0
      await until(`node ${node} serves again`, async () => {
        return (await send(node, { name: `again ${node} ${i} ${attempts++}` }).reply).status === 200
      })
    }),
  )
  cluster.node(PAUSED).resume()
  cluster.node(CUT_OFF).wire.heal()
  assert.equal((await pausedCall.reply).text, expectedBytes(pausedCall.call))
  const settledLate = ['gate paused', 'gate cut off']
  await until('the late calls are settled', async () => {
    const now = await states()
    return settledLate.every((name) => now[name] === 'settled')
  })
  assert.equal((await states())['gate killed'], 'interrupted')
  await Promise.all(early)
  await Promise.all(again)

  // Fenced registrations are gone, and no call is open under them.
  const nodes = await cluster.database.query('SELECT id FROM node')
  const removed = registrations.filter(({ id }) => !nodes.some((node) => node['id'] === id))
  assert.equal(removed.length, 3)
  for (const { id } of removed) {
    const open = 'SELECT id FROM hold WHERE node_id = $1'
    assert.deepEqual(await cluster.database.query(open, [id]), [])
  }

  await cluster.node(KILLED).start()
  assert.equal((await send(KILLED, { name: 'reborn' }).reply).status, 200)
  await until(
    'every admission has a known outcome',
    async () => !Object.values(await states()).includes('in_flight'),
  )
  const calls = [...(await cluster.callsOf(id)).values()]
  for (const call of calls) {
    const cost = call['state'] === 'settled' ? BigInt(TOKENS) * NANOS_PER_TOKEN : 0n
    assert.equal(call['cost_nanos'], cost, String(call['user_agent']))
  }
  await cluster.assertBalanced()
})
