import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf, assertRefused } from './own-client.ts'

const gateway = await startGateway()
closeAfter(gateway)
const ask = askOf(gateway)
const PATH = '/gateway/v1/events'

type EventObject = Record<string, unknown> & { readonly id: string; readonly type: string }

async function list(query = ''): Promise<readonly EventObject[]> {
  const { status, body } = await ask('GET', `${PATH}${query}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body['data'] as EventObject[]
}

test('a change emits one event with its actor, the record and exact amounts', async () => {
  const text = '{"name":"activity","monthly_budget_usd":999999999.123456789}'
  const { id } = (await ask('POST', '/v1/keys', { text })).body
  await ask('PATCH', `/v1/keys/${id}`, { json: { name: '=activity' } })
  const [updated, created] = await list()
  assert.deepEqual([updated?.type, created?.type], ['key.updated', 'key.created'])
  const { id: eventId, created_at, actor, data, ...rest } = updated ?? assert.fail()
  assert.match(eventId, /^evt_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.ok(Math.abs(Date.parse(String(created_at)) - Date.now()) < 600_000)
  assert.deepEqual(rest, { object: 'event', type: 'key.updated', account_id: 'default' })
  const { kind, id: actorId } = actor as Record<string, string>
  assert.equal(kind, 'admin_key')
  const { key, changes } = data as Record<string, Record<string, unknown>>
  assert.deepEqual(changes, { name: { old: 'activity', new: '=activity' } })
  assert.equal(key?.['id'], id)
  const answer = await fetch(`${gateway.url}${PATH}?limit=1`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  assert.match(await answer.text(), /"monthly_budget_usd":999999999\.123456789,/)

  const ofActor = await list(`?actor=${actorId}`)
  assert.ok(
    ofActor.length >= 2 && ofActor.every((event) => (event['actor'] as { id: string }).id === actorId),
  )
  assert.deepEqual(await list('?actor=adm_none'), [])
  assert.deepEqual((await list('?type=key.created'))[0]?.id, created?.id)
  const today = new Date().toISOString().slice(0, 10)
  assert.deepEqual((await list(`?start=${today}&end=${today}`))[0]?.id, eventId)
  assert.deepEqual(await list('?end=2020-01-01'), [])
  const { body: page } = await ask('GET', `${PATH}?limit=1`)
  assert.deepEqual([page['has_more'], page['next']], [true, eventId])
  assert.deepEqual((await list(`?limit=1&after=${page['next']}`)).at(0)?.id, created?.id)
})

test('a CSV of events is complete without a limit, and its text runs no formula', async () => {
  for (let i = 0; i < 110; i += 1)
    await ask('POST', '/gateway/v1/credits', { json: { amount_usd: 1, reason: '=1' } })
  const read = async (query: string) => {
    const headers = { authorization: `Bearer ${gateway.adminKey}` }
    const answer = await fetch(`${gateway.url}${PATH}?format=csv${query}`, { headers })
    assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
    return (await answer.text()).trimEnd().split('\r\n')
  }
  const [head, first, ...more] = await read('&type=credit.added')
  assert.equal(head, 'id,type,created_at,account_id,actor_kind,actor_id,actor_name,data')
  assert.match(first ?? '', /^evt_\w+,credit\.added,[\dTZ:.-]+,default,admin_key,adm_\w+,.*,"\{""credit"":/)
  assert.equal(more.length, 109)
  assert.equal((await read('&limit=5')).length, 6)
})

test('only operators see upstreams and metadata in the events of an account', async () => {
  const { id } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'team' })
  const chat = { url: 'https://upstream.example/v1' }
  const edit = { name: 'Team', upstreams: { chat }, metadata: { margin: 'high' } }
  await gateway.manage('PATCH', `/gateway/v1/accounts/${id}`, edit)
  const fields = { name: 'reader', role: 'viewer', account_id: id }
  const { key } = await gateway.manage('POST', '/gateway/v1/admin-keys', fields)
  const read = async (token: unknown, format: string) => {
    const query = `account=${id}&type=account.updated&format=${format}`
    const answer = await fetch(`${gateway.url}${PATH}?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return await answer.text()
  }
  for (const format of ['json', 'csv']) {
    const own = await read(key, format)
    assert.match(own, /changes.*name.*team.*Team/)
    assert.doesNotMatch(own, /upstream|metadata|margin/)
    assert.match(await read(gateway.adminKey, format), /upstream\.example.*margin|margin.*upstream\.example/)
  }
})

const wrong: readonly (readonly [query: string, param: string])[] = [
  ['type=key.paused', 'type'],
  ['start=2026-02-30', 'start'],
  ['start=2026-02-02&end=2026-02-01', 'start'],
  ['limit=0', 'limit'],
  ['after=key_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'after'],
  ['format=xml', 'format'],
  ['actor=', 'actor'],
]
for (const [query, param] of wrong)
  test(`?${query} is refused and ${param} is named`, async () => {
    assertRefused(await ask('GET', `${PATH}?${query}`), 400, { code: 'bad_request', param })
  })

test('an event is read by its id, in its own account only', async () => {
  const { id: account } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'reads one event' })
  const listed = (await gateway.manage('GET', `${PATH}?account=${account}&limit=1`))['data'] as {
    id: string
  }[]
  const [event] = listed
  assert.deepEqual(await gateway.manage('GET', `${PATH}/${event?.id}`), event)
  const fields = { name: 'stranger', role: 'viewer', account_id: 'default' }
  const { key } = await gateway.manage('POST', '/gateway/v1/admin-keys', fields)
  const foreign = await fetch(`${gateway.url}${PATH}/${event?.id}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  assert.equal(foreign.status, 404)
})
