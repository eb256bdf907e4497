import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { create, startTurnsBench } from './turns-bench.ts'

const bench = await startTurnsBench()
closeAfter(bench)
const { gateway } = bench

interface Kept {
  readonly content: string
  readonly length_bytes: number
  readonly truncated: boolean
}

async function ask(id: unknown) {
  const response = await fetch(`${gateway.url}/gateway/v1/requests/${id}/bodies`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  return { status: response.status, body: (await response.json()) as { request: Kept; response: Kept } }
}

async function bodiesOf(id: unknown) {
  let asked = await ask(id)
  await until(`bodies of ${id}`, async () => {
    asked = await ask(id)
    return asked.status === 200
  })
  return asked.body
}

/** The logged body of a turn: the event stream that HTTP would have sent. */
const eventsIn = ({ content }: Kept) =>
  content
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      assert.match(block, /^data: /)
      return JSON.parse(block.slice('data: '.length)) as unknown
    })

const { key: loggedKey } = await gateway.createKey('logged', { log_requests: true })

test('the bodies of a turn are its first message and its events', async () => {
  const socket = await bench.open({ key: loggedKey })
  const sent = [create(), create({ input: 'Grüße, “world”' })]
  const got = [await socket.turn(sent[0] ?? {}), await socket.turn(sent[1] ?? {})]
  socket.ws.close()
  const turns = await bench.turns(socket.id, 2)
  for (const [i, { id }] of turns.entries()) {
    const { request, response } = await bodiesOf(id)
    assert.equal(request.content, JSON.stringify(sent[i]))
    assert.equal(request.length_bytes, Buffer.byteLength(JSON.stringify(sent[i])))
    assert.deepEqual(eventsIn(response), got[i])
    assert.deepEqual([request.truncated, response.truncated], [false, false])
  }
  assert.equal((await ask(socket.id)).status, 404, 'a handshake has no bodies')
})

test('secrets in a message are removed from its logged body', async () => {
  const socket = await bench.open({ key: loggedKey })
  await socket.turn(create({ input: `my key is ${loggedKey}` }))
  socket.ws.close()
  const [{ id } = {}] = await bench.turns(socket.id, 1)
  const { request, response } = await bodiesOf(id)
  assert.match(request.content, /my key is svc_live_\[redacted\]/)
  assert.ok(!response.content.includes(loggedKey))
})
