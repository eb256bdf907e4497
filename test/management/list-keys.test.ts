import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { movableClock } from './movable-clock.ts'
import { type Answer, askOf, assertUnstored, NO_SUCH_KEY } from './own-client.ts'

const clock = movableClock()
const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9', clock })
after(() => gateway.close())
const ask = askOf(gateway)
const list = (query = '') => ask('GET', `/v1/keys${query}`)

const rowsOf = ({ status, body }: Answer) => {
  assert.equal(status, 200, JSON.stringify(body))
  return body['data'] as readonly Record<string, unknown>[]
}
const namesOf = (answer: Answer) => rowsOf(answer).map(({ name }) => name)

/** The gateway begins with one key, named `test`; these keys come after it. */
const alpha = await gateway.createKey('Alpha one')
const revoked = await gateway.createKey('alpha TWO')
const expired = await gateway.createKey('100%_sure', {
  expires_at: new Date(clock.nowMs() + 60_000).toISOString(),
})
const umlaut = await gateway.createKey('Öl & Gas')
await gateway.revokeKey(revoked.id)
clock.advance(60_000)

test('GET /v1/keys 200: all keys, newest first, each as its own endpoint shows it', async () => {
  const answer = await list()
  assertUnstored(answer)
  const { data, ...rest } = answer.body
  assert.deepEqual(rest, { object: 'list', has_more: false, next: null })
  assert.deepEqual(namesOf(answer), ['Öl & Gas', '100%_sure', 'alpha TWO', 'Alpha one', 'test'])
  for (const row of data as readonly { id: string }[]) {
    assert.deepEqual(row, (await ask('GET', `/v1/keys/${row.id}`)).body)
  }
})

test('GET /v1/keys 200: page by page, each key once, and the last page says so', async () => {
  const seen: unknown[] = []
  let query = '?limit=2'
  const more: unknown[] = []
  for (let page = 0; page < 3; page++) {
    const answer = await list(query)
    seen.push(...namesOf(answer))
    more.push(answer.body['has_more'])
    assert.equal(answer.body['next'] === null, answer.body['has_more'] === false)
    query = `?limit=2&after=${answer.body['next']}`
  }
  assert.deepEqual(seen, ['Öl & Gas', '100%_sure', 'alpha TWO', 'Alpha one', 'test'])
  assert.deepEqual(more, [true, true, false])
})

test('GET /v1/keys 200: a page that is exactly full has no more behind it', async () => {
  const { body } = await list('?limit=5')
  assert.deepEqual([body['has_more'], body['next']], [false, null])
})

test('GET /v1/keys 200: a cursor older than all keys is the end', async () => {
  assert.deepEqual(rowsOf(await list(`?after=${NO_SUCH_KEY}`)), [])
})

test('GET /v1/keys 200: by status, as it is at this instant', async () => {
  assert.deepEqual(namesOf(await list('?status=usable')), ['Öl & Gas', 'Alpha one', 'test'])
  assert.deepEqual(namesOf(await list('?status=revoked')), ['alpha TWO'])
  assert.deepEqual(namesOf(await list('?status=expired')), ['100%_sure'])
})

const searches: readonly [what: string, search: string, names: readonly string[]][] = [
  ['part of a name in any case', 'ALPHA', ['alpha TWO', 'Alpha one']],
  ['an id', alpha.id, ['Alpha one']],
  ['part of an id', alpha.id.slice(-12), ['Alpha one']],
  ['a prefix', umlaut.key.slice(0, 16), ['Öl & Gas']],
  ['the last four characters', expired.key.slice(-4), ['100%_sure']],
  ['a per cent sign, which stands for itself', '%', ['100%_sure']],
  ['an underline, which stands for itself in a name', '%_', ['100%_sure']],
  ['characters that have to be encoded', 'Öl & ', ['Öl & Gas']],
  ['nothing that is there', 'zebra', []],
]
test('GET /v1/keys 200: search', async () => {
  for (const [what, search, names] of searches)
    assert.deepEqual(namesOf(await list(`?${new URLSearchParams({ search })}`)), names, what)
})

test('GET /v1/keys 200: no search finds a secret', async () => {
  assert.deepEqual(rowsOf(await list(`?search=${alpha.key}`)), [])
  assert.deepEqual(rowsOf(await list(`?search=${alpha.key.slice(0, 17)}`)), [])
})

test('GET /v1/keys 200: a search and a page beyond it', async () => {
  const first = await list('?search=alpha&limit=1')
  assert.deepEqual(namesOf(first), ['alpha TWO'])
  const second = await list(`?search=alpha&limit=1&after=${first.body['next']}`)
  assert.deepEqual(namesOf(second), ['Alpha one'])
})

test('GET /v1/keys 200: a blank may be a plus or %20, and stray separators mean nothing', async () => {
  for (const query of [
    '?search=alpha+one',
    '?search=alpha%20one',
    '?&search=alpha+one&',
    '?%73earch=alpha+one',
  ]) {
    assert.deepEqual(namesOf(await list(query)), ['Alpha one'], query)
  }
  assert.equal((await list('?')).status, 200)
})

test('GET /v1/keys 200: a hundred keys where no limit is given', async () => {
  const many = await startGateway()
  try {
    for (let i = 0; i < 10; i++) {
      await Promise.all(Array.from({ length: 10 }, () => many.createKey('one of many')))
    }
    const answer = await askOf(many)('GET', '/v1/keys')
    assert.equal(rowsOf(answer).length, 100)
    assert.equal(answer.body['has_more'], true)
    assert.equal(answer.body['next'], rowsOf(answer).at(-1)?.['id'])
  } finally {
    await many.close()
  }
})
