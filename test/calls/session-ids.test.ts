import assert from 'node:assert/strict'
import { create, startTurnsBench } from '../sockets/turns-bench.ts'
import { closeAfter, test } from '../support/suite.ts'

const bench = await startTurnsBench()
closeAfter(bench)
const { gateway } = bench

type Rows = { readonly data: readonly Readonly<Record<string, unknown>>[] }

const listed = async (query: string) =>
  ((await gateway.manage('GET', `/gateway/v1/requests?${query}`)) as Rows).data

async function sessionOf(headers: Readonly<Record<string, string>>, path = '/v1/models') {
  const authorization = `Bearer ${gateway.apiKey}`
  const response = await fetch(gateway.url + path, { headers: { authorization, ...headers } })
  await response.arrayBuffer()
  const id = response.headers.get('x-svc-request-id')
  return ((await gateway.manage('GET', `/gateway/v1/requests/${id}`)) as Rows['data'][number])['session_id']
}

test('a call is recorded with the first of the session headers that is not empty', async () => {
  const all = { 'x-claude-code-session-id': 'a', 'session-id': 'b', session_id: 'c', 'x-session-id': 'd' }
  assert.equal(await sessionOf(all), 'a')
  assert.equal(await sessionOf({ ...all, 'x-claude-code-session-id': '' }), 'b')
  assert.equal(await sessionOf({ 'X-Session-Id': 'd', session_id: ' ' }), 'd')
  assert.equal(await sessionOf({}), null)
})

test('a session id is cut to 128 characters, after credentials are removed', async () => {
  assert.equal(await sessionOf({ 'session-id': 's'.repeat(200) }), 's'.repeat(128))
  const leaky = await sessionOf({ 'session-id': `${'s'.repeat(100)} ${gateway.apiKey}` })
  assert.ok(!String(leaky).includes(gateway.apiKey.slice(0, 16)), String(leaky))
})

test('turns inherit the session id of their handshake, refused calls have one, and lists filter by it', async () => {
  const socket = await bench.open({ headers: { 'session-id': 'of the socket' } })
  await socket.turn(create())
  socket.ws.close()
  const turns = await bench.turns(socket.id, 1)
  assert.deepEqual(
    turns.map((turn) => turn['session_id']),
    ['of the socket'],
  )
  const ids = (await listed('session=of+the+socket')).map(({ id }) => id)
  assert.deepEqual(ids, [turns[0]?.['id'], socket.id])
  assert.deepEqual(await listed('session=another'), [])

  const refused = await sessionOf({ 'session-id': 'refused' }, '/v1/no-such-path?a=%ZZ')
  assert.equal(refused, 'refused')
})
