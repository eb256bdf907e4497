import assert from 'node:assert/strict'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { after, afterEach, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { sized } from '../support/wire-bytes.ts'
import { opcodeOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import {
  closeCodeOf,
  closeFrameOf,
  created,
  createFrame,
  delta,
  ended,
  hasMessages,
  USAGE,
} from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())
afterEach(() => assertBalanced(bench.gateway))

const words = ['Toll', 'gates ', 'are ', 'old.']
let responses = 0

async function inMidTurn(options: { key?: string; request?: object } = {}) {
  const socket = await bench.open(options.key === undefined ? {} : { key: options.key })
  return { ...socket, responseId: await beginTurn(socket, options.request) }
}

async function beginTurn({ client, upstream }: RawSocket, request: object = {}): Promise<string> {
  const responseId = `resp_${responses++}`
  const already = splitFrames(client.received).length
  const create = createFrame(request)
  const arrived = upstream.receivedBytes(upstream.received.length + create.length)
  await client.send(create)
  await arrived
  await upstream.send(Buffer.concat([created(responseId), ...words.map(delta)]))
  await hasMessages(client, already + 1 + words.length)
  return responseId
}

const figures = (record: Readonly<Record<string, unknown>>) => [
  ...['state', 'estimated', 'model', 'status'].map((name) => record[name]),
  JSON.stringify(record['usage']),
  nanosOf(record['cost_usd']),
]

const LEAVINGS: Record<string, (socket: RawSocket) => unknown> = {
  'a close frame': ({ client }) => client.send(closeFrameOf(1000, 'client')),
  'a close frame without a code': ({ client }) => client.send(wireOf('client', { opcode: 8, payload: '' })),
  FIN: ({ client }) => client.socket.end(),
  RST: ({ client }) => client.reset(),
}

for (const [way, leave] of Object.entries(LEAVINGS)) {
  test(`leaving an idle socket by ${way} closes it upstream, and its turns are billed`, async () => {
    const socket = await inMidTurn()
    await socket.upstream.send(ended(socket.responseId))
    await hasMessages(socket.client, 2 + words.length)
    await bench.turns(socket.id, 1)
    leave(socket)
    const { client, upstream } = socket
    await upstream.until(() => splitFrames(upstream.received).some((each) => opcodeOf(each) === 8), 'a close')
    await upstream.send(closeFrameOf(1000))
    upstream.socket.end()
    await client.ended
    await upstream.ended
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.equal(turn['estimated'], false)
    // 1,000 × $2.50/M + 100 × $10/M.
    assert.equal(nanosOf(turn['cost_usd']), 3_500_000)
  })
}

test('a turn costs the same however its client left', async () => {
  const bills = new Map<string, unknown>()
  for (const [way, leave] of Object.entries(LEAVINGS)) {
    const socket = await inMidTurn()
    leave(socket)
    await socket.upstream.ended
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.equal(turn['state'], 'settled', way)
    assert.equal(turn['estimated'], true, way)
    assert.ok(nanosOf(turn['cost_usd']) > 0, way)
    bills.set(way, figures(turn))
    socket.client.socket.destroy()
  }
  const [first] = bills.values()
  for (const [way, bill] of bills) assert.deepEqual(bill, first, way)
})

test('a turn whose client left is billed by its usage if upstream states it at once', async () => {
  for (const [way, leave] of Object.entries(LEAVINGS)) {
    // The usage of the tool cannot be read from the delivered text, so the turn is read to its end.
    const socket = await inMidTurn({
      request: { tools: [{ type: 'web_search' }], previous_response_id: 'resp_before' },
    })
    leave(socket)
    await fetch(`${bench.gateway.url}/healthz`)
    await socket.upstream.send(ended(socket.responseId))
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.deepEqual(
      [turn['estimated'], JSON.stringify(turn['usage']).includes(String(USAGE.input_tokens))],
      [false, true],
      way,
    )
    await socket.upstream.ended
    socket.client.socket.destroy()
  }
})

test('a client that closes mid-turn gets a close frame even if upstream sends none', async () => {
  const socket = await inMidTurn()
  await socket.client.send(closeFrameOf(4_001, 'client'))
  await socket.client.until(() => closeCodeOf(socket.client) !== null, 'a close frame')
  assert.equal(closeCodeOf(socket.client), 4_001)
  await socket.client.ended
  socket.client.socket.end()
  await socket.upstream.ended
})

/** How upstream fails mid-turn, and the close code that the client gets. */
const FAILURES: Record<string, [fail: (socket: RawSocket) => unknown, code: number | null]> = {
  RST: [({ upstream }) => upstream.reset(), null],
  FIN: [({ upstream }) => upstream.socket.end(), null],
  'a close frame': [
    async ({ upstream }) => {
      await upstream.send(closeFrameOf(1011))
      upstream.socket.end()
    },
    1011,
  ],
  'a reserved opcode': [({ upstream }) => upstream.send(wireOf('server', { opcode: 5, payload: 'x' })), 1011],
  'a masked frame': [
    ({ upstream }) => upstream.send(wireOf('server', { opcode: 1, payload: '{}', key: Buffer.alloc(4, 7) })),
    1011,
  ],
  'bytes that are not frames': [
    ({ upstream }) => upstream.send(Buffer.from('HTTP/1.1 500 Oops\r\n\r\n')),
    1011,
  ],
  'text that is not UTF-8': [
    ({ upstream }) => upstream.send(wireOf('server', { opcode: 1, payload: Buffer.from([0xc3, 0x28]) })),
    1011,
  ],
}

for (const [way, [fail, code]] of Object.entries(FAILURES)) {
  test(`if upstream fails mid-turn by ${way}, the bill is estimated and nothing stays held`, async () => {
    const socket = await inMidTurn()
    await fail(socket)
    await socket.client.ended
    assert.equal(closeCodeOf(socket.client), code)
    socket.client.socket.end()
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.ok(turn['state'] === 'settled' || turn['state'] === 'interrupted', String(turn['state']))
    if (turn['state'] === 'settled') assert.equal(turn['estimated'], true)
    await socket.upstream.ended.catch(() => {})
  })
}

test('a running stored response whose client left is deferred, and DELETE of it is refused', async () => {
  await using own = await startRawBench()
  const { gateway } = own
  const socket = await own.open()
  const responseId = await beginTurn(socket, { store: true })
  const path = `/v1/responses/${responseId}`
  const remove = async () => {
    const headers = { authorization: `Bearer ${gateway.apiKey}` }
    const reply = await fetch(gateway.url + path, { method: 'DELETE', headers })
    return [reply.status, ((await reply.json()) as { error: { code: unknown } }).error.code]
  }
  assert.deepEqual(await remove(), [409, 'not_settled'], 'it streams')
  let status = 'in_progress'
  const answer = async () => {
    for (;;) {
      const wire = await own.accepted()
      await wire.head()
      const usage = status === 'completed' ? USAGE : null
      const body = JSON.stringify({ id: responseId, model: 'gpt-4o', status, usage })
      const lines = ['Content-Type: application/json', 'Connection: close']
      wire.socket.end(sized('HTTP/1.1 200 OK', lines, body))
    }
  }
  answer().catch(() => {})
  socket.client.socket.destroy()
  const [left = {}] = await own.turns(socket.id, 1)
  assert.equal(left['state'], 'deferred')
  assert.deepEqual(await remove(), [409, 'not_settled'], 'it was left')
  status = 'completed'
  await until('it is settled', async () => {
    const [turn = {}] = await own.turns(socket.id, 1)
    return turn['state'] === 'settled'
  })
  const [turn = {}] = await own.turns(socket.id, 1)
  assert.deepEqual([turn['estimated'], nanosOf(turn['cost_usd'])], [false, 3_500_000])
})

test('if upstream dies before it begins a turn, the turn costs nothing', async () => {
  const socket = await bench.open()
  const create = createFrame()
  await socket.client.send(create)
  await socket.upstream.receivedBytes(create.length)
  socket.upstream.reset()
  await socket.client.ended
  const [turn = {}] = await bench.turns(socket.id, 1)
  assert.equal(nanosOf(turn['cost_usd']), 0)
  socket.client.socket.destroy()
})

for (const [status, usage] of [
  ['failed', null],
  ['failed', USAGE],
  ['incomplete', USAGE],
  ['cancelled', USAGE],
  ['done', USAGE],
] as const) {
  test(`response.${status} ends a turn${usage === null ? ' without usage' : ''}`, async () => {
    const socket = await inMidTurn()
    await socket.upstream.send(ended(socket.responseId, status, usage))
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.equal(turn['state'], 'settled')
    if (usage !== null) assert.equal(nanosOf(turn['cost_usd']), 3_500_000)
    socket.client.socket.destroy()
  })
}

for (const [id, usage, nanos] of [
  ['resp_own', USAGE, 3_500_000],
  [null, USAGE, 3_500_000],
  ['resp_own', null, 10_000],
] as const)
  test(`a response that no client requested costs ${nanos} nanodollars, id ${id}`, async () => {
    const socket = await bench.open({})
    if (id === null) await socket.upstream.send(ended(await beginTurn(socket)))
    await socket.upstream.send(Buffer.concat([created(id), delta('Hm.'), ended(id, 'completed', usage)]))
    const turns = await bench.turns(socket.id, id === null ? 2 : 1)
    assert.equal(nanosOf(turns.at(-1)?.['cost_usd']), nanos)
    socket.client.socket.destroy()
  })

test('a client’s close frame passes at once, even mid-turn, before waiting turns and after invalid JSON', async () => {
  const frame = wireOf('client', {
    opcode: 8,
    payload: Buffer.concat([Buffer.from([0x0f, 0xa2]), Buffer.from('bye')]),
  })
  const { key } = await bench.gateway.createKey('waiting', { monthly_budget_usd: 0.000_1 })
  const before: Record<string, (socket: RawSocket) => unknown> = {
    'nothing else': () => undefined,
    'a turn that runs': (socket) => beginTurn(socket),
    'a turn that waits': async (socket) => {
      await beginTurn(socket)
      await socket.client.send(createFrame())
    },
    'a message that is no JSON': (socket) =>
      socket.client.send(wireOf('client', { opcode: 1, payload: 'x' })),
  }
  for (const [what, prepare] of Object.entries(before)) {
    const socket = await bench.open({ key: what === 'a turn that waits' ? key : bench.gateway.apiKey })
    await prepare(socket)
    await socket.client.send(frame)
    const { upstream } = socket
    const closes = () => splitFrames(upstream.received).filter((each) => opcodeOf(each) === 8)
    await upstream.until(() => closes().length > 0, `a close behind ${what}`)
    assert.ok(closes()[0]?.equals(frame), what)
    upstream.socket.destroy()
    socket.client.socket.destroy()
  }
})
