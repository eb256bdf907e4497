import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import { type KeyQuery, type KeyRecord, keyStatus } from '../../../src/keys/key-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { addKey, closing, digestOf, NOON, newKey, type OpenStoreUnderTest, opening } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const ALL: KeyQuery = {
  accountId: 'default',
  status: null,
  search: null,
  after: null,
  limit: 1_000,
  atMs: NOON,
}

const names = (rows: readonly KeyRecord[]): string[] => rows.map((key) => key.name)

async function find(store: Store, search: string): Promise<string[]> {
  return names((await store.listKeys({ ...ALL, search })).rows)
}

/** Creates a key of each name. Ids ascend with the names, so the first name is listed last. */
async function addNames(store: Store, all: readonly string[]): Promise<void> {
  await Promise.all(
    all.map((name, i) =>
      store.createKey(
        newKey(name, { id: `key_${String(i).padStart(4, '0')}`, digest: digestOf(`${i}`) }),
        null,
        SYSTEM,
      ),
    ),
  )
}

export function keyListConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('keys of one account are listed newest first', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await addNames(store, ['first', 'second', 'third'])
    await addKey(store, 'foreign', { accountId: 'other' })
    assert.deepEqual(names((await store.listKeys(ALL)).rows), ['third', 'second', 'first'])
    assert.deepEqual(names((await store.listKeys({ ...ALL, accountId: 'other' })).rows), ['foreign'])
    assert.deepEqual(await store.listKeys({ ...ALL, accountId: 'nobody' }), { rows: [], more: false })
  })

  test('a listed key equals the record read alone, with its month', async ({ store }) => {
    await addKey(store, 'a', { monthlyBudgetNanos: 10_000n, allowedModels: ['x'], logRequests: true })
    await addKey(store, 'b')
    await store.admit(opening('req_1', 'a', { modelAsked: 'x' }))
    await store.settle(closing('req_1'))
    for (const atMs of [NOON, Date.UTC(2026, 11, 1)]) {
      const { rows } = await store.listKeys({ ...ALL, atMs })
      assert.deepEqual(rows, [
        await store.getKey('default', 'key_b', atMs),
        await store.getKey('default', 'key_a', atMs),
      ])
    }
  })

  test('a metadata search matches a pair with any characters', async ({ store }) => {
    await addKey(store, 'web', { metadata: { team: 'web', 'a:b': 'c:d"', 'x%': "'" } })
    await addKey(store, 'data', { metadata: { team: 'data' } })
    for (const [search, found] of [
      ['metadata.team:web', ['web']],
      ['metadata.team:data', ['data']],
      ['metadata.team:we', []],
      ['metadata.team:WEB', []],
      ['metadata.a:b:c:d"', ['web']],
      ["metadata.x%:'", ['web']],
      ['metadata.team', []],
      ['team:web', []],
    ] as const)
      assert.deepEqual(await find(store, search), found, search)
  })

  test('pages list every key once, even if keys are created between pages', async ({ store }) => {
    const before = Array.from({ length: 25 }, (_, i) => `old ${i}`)
    await addNames(store, before)
    const seen: string[] = []
    let after: string | null = null
    for (let page = 0; page < 10; page += 1) {
      const { rows, more }: { rows: readonly KeyRecord[]; more: boolean } = await store.listKeys({
        ...ALL,
        after,
        limit: 7,
      })
      seen.push(...names(rows))
      after = rows.at(-1)?.id ?? null
      if (!more) break
      await addKey(store, `new ${page}`, { id: `key_9${page}` })
    }
    assert.deepEqual(seen, before.toReversed())
  })

  test('a list continues after an id that is not in it', async ({ store }) => {
    await addNames(store, ['zero', 'one', 'two'])
    const after = async (id: string) => names((await store.listKeys({ ...ALL, after: id })).rows)
    assert.deepEqual(await after('key_00015'), ['one', 'zero'])
    assert.deepEqual(await after(''), [])
    assert.deepEqual(await after("' OR 1=1 --"), [])
  })

  test('a search matches part of a name, ignoring case in any alphabet', async ({ store }) => {
    await addNames(store, ['Acme Production', 'acme staging', 'Straße 1', 'ÄRGER', 'ΣΑΣΑ', 'other'])
    assert.deepEqual(await find(store, 'ACME'), ['acme staging', 'Acme Production'])
    assert.deepEqual(await find(store, 'e p'), ['Acme Production'])
    assert.deepEqual(await find(store, 'ärger'), ['ÄRGER'])
    assert.deepEqual(await find(store, 'STRASSE'), ['Straße 1'])
    assert.deepEqual(await find(store, 'σας'), ['ΣΑΣΑ'])
    assert.deepEqual(await find(store, 'not there'), [])
  })

  test('a search matches part of the id, the prefix or the last four characters', async ({ store }) => {
    await addKey(store, 'a', { id: 'key_01JABC', prefix: 'svc_live_AbCdEfG', last4: 'w1Z9' })
    await addKey(store, 'b', { id: 'key_01JXYZ' })
    assert.deepEqual(await find(store, '01JA'), ['a'])
    assert.deepEqual(await find(store, 'key_01J'), ['b', 'a'])
    assert.deepEqual(await find(store, 'live_AbC'), ['a'])
    assert.deepEqual(await find(store, '1Z9'), ['a'])
    // The prefix and the last four characters are matched separately.
    assert.deepEqual(await find(store, 'AbCdEfGw1Z9'), [])
  })

  test('a search treats every character literally', async ({ store }) => {
    const hostile = [
      '100%',
      'a_b',
      '%',
      '_',
      "Robert'); DROP TABLE api_key;--",
      '\\',
      '*',
      '[a-z]',
      '"',
      '?1',
      ':at',
    ]
    await addNames(store, [...hostile, 'plain', 'axb', '\u{1f511} key', 'line\nbreak'])
    for (const text of hostile) {
      const expected = hostile.filter((name) => name.toUpperCase().includes(text.toUpperCase()))
      const found = await find(store, text)
      // Every id contains an underscore.
      if (text === '_') assert.equal(found.length, 15)
      else assert.deepEqual(found.toSorted(), expected.toSorted(), text)
    }
    assert.deepEqual(await find(store, '\u{1f511}'), ['\u{1f511} key'])
    assert.deepEqual(await find(store, 'L\0I'), [])
    assert.deepEqual(await find(store, 'e\nb'), ['line\nbreak'])
    assert.deepEqual(await find(store, '\ud800'), [])
    assert.deepEqual(await find(store, 'x'.repeat(100_000)), [])
    assert.equal((await find(store, '')).length, 15)
  })

  test('a search finds any part of any name', async ({ store }) => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    const drawn = fc.sample(name, { numRuns: 200, seed: 4 })
    await addNames(store, drawn)
    for (const [i, whole] of drawn.entries()) {
      const letters = [...whole]
      const part = letters.slice(i % letters.length).join('')
      assert.ok((await find(store, part)).includes(whole), JSON.stringify({ whole, part }))
    }
  })

  test('a list by status returns the keys with that status at the given time', async ({ store }) => {
    await addKey(store, 'usable')
    await addKey(store, 'ending', { expiresAtMs: NOON })
    await addKey(store, 'revoked')
    await addKey(store, 'revoked and past its end', { expiresAtMs: NOON })
    await store.revokeKey('default', 'key_revoked', NOON - 50, SYSTEM)
    await store.revokeKey('default', 'key_revoked and past its end', NOON - 50, SYSTEM)
    const all = (await store.listKeys(ALL)).rows
    assert.equal(all.length, 4)
    for (const atMs of [NOON - 1, NOON, NOON + 1]) {
      for (const status of ['usable', 'revoked', 'expired'] as const) {
        const { rows } = await store.listKeys({ ...ALL, status, atMs })
        assert.deepEqual(
          names(rows),
          names(all.filter((key) => keyStatus(key, atMs) === status)),
          `${status} at ${atMs - NOON}`,
        )
      }
    }
  })

  test('status, search and paging can be combined', async ({ store }) => {
    await addNames(
      store,
      Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? `even ${i}` : `odd ${i}`)),
    )
    for (let i = 0; i < 30; i += 3)
      await store.revokeKey('default', `key_${String(i).padStart(4, '0')}`, NOON, SYSTEM)
    const query: KeyQuery = { ...ALL, status: 'revoked', search: 'EVEN', limit: 2 }
    const first = await store.listKeys(query)
    assert.deepEqual([names(first.rows), first.more], [['even 24', 'even 18'], true])
    const rest = await store.listKeys({ ...query, after: 'key_0018', limit: 3 })
    assert.deepEqual([names(rest.rows), rest.more], [['even 12', 'even 6', 'even 0'], false])
  })
}
