import assert from 'node:assert/strict'
import { SYSTEM } from '../../src/kernel/actor.ts'
import type { Idempotency } from '../../src/kernel/idempotency.ts'
import type { KeySuccessor } from '../../src/keys/key-store.ts'
import { number, present } from '../../src/store/rows.ts'
import type { Store } from '../../src/store/store.ts'
import { createDatabase, openPatientPool, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import {
  addKey,
  closing,
  creditBackOf,
  digestOf,
  EVERY_ADMIN,
  NOON,
  newKey,
  opening,
} from './conformance/fixtures.ts'
import { openByCallersClock } from './postgres-under-test.ts'

after(stopPostgres)

const EVERY = { scope: EVERY_ADMIN, after: null, limit: 9 }
const HOUR_MS = 3_600_000

interface Shared {
  readonly stores: readonly [Store, Store]
  databaseMs(): Promise<number>
  /** Rolls `obstacle` back once CROWD commands wait for it, and resolves with their results. */
  crowd<T>(obstacle: string, command: (store: Store, i: number) => Promise<T>): Promise<T[]>
  /** Runs `work` while another transaction holds the locks of this statement. */
  whileLocked(lock: string, work: () => Promise<void>): Promise<void>
}

/** The number of commands for which the two nodes have connections. */
const CROWD = 8

function shared(
  sentence: string,
  clock: 'caller' | 'database',
  prove: (subject: Shared) => Promise<void>,
): void {
  test(sentence, async () => {
    const database = await createDatabase()
    const more = { clock, node: { name: 'test', alone: false, beatEveryMs: null } }
    const one = await openByCallersClock(database.url, more)
    const other = await openByCallersClock(database.url, more)
    const db = openPatientPool(database.url, 2)

    const waiting = async () => number(present((await db.query(WAITING))[0]), 'count')

    async function crowd<T>(
      obstacle: string,
      command: (store: Store, i: number) => Promise<T>,
    ): Promise<T[]> {
      const commands: Promise<T>[] = []
      const undone = db.transaction(async (tx) => {
        await tx.query(obstacle)
        for (let i = 0; i < CROWD; i += 1) {
          const asked = command(i % 2 === 0 ? one : other, i)
          asked.catch(() => {})
          commands.push(asked)
        }
        for (let looks = 0; (await waiting()) < CROWD; looks += 1) {
          if (looks === LOOKS_MAX) throw new Error('nothing stands in the way of these commands')
        }
        throw new Error('undo')
      })
      await assert.rejects(undone, /undo/)
      return await Promise.all(commands)
    }

    try {
      await prove({
        stores: [one, other],
        databaseMs: async () => number(present((await db.query('SELECT now_ms() AS ms'))[0]), 'ms'),
        crowd,
        whileLocked: (lock, work) =>
          db.transaction(async (tx) => {
            await tx.query(lock)
            await work()
          }),
      })
    } finally {
      await Promise.all([one.close(), other.close(), db.close()])
      await database.drop()
    }
  })
}

const LOOKS_MAX = 5_000
const WAITING = `SELECT count(*) AS count FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`

const once = (name: string, more: Partial<Idempotency> = {}): Idempotency => ({
  accountId: 'default',
  name,
  fingerprint: digestOf(name),
  atMs: NOON,
  ...more,
})

function successor(name: string, more: Partial<KeySuccessor> = {}): KeySuccessor {
  const { id, digest, prefix, last4 } = newKey(name)
  return { id, digest, prefix, last4, createdAtMs: NOON, oldExpiresAtMs: null, ...more }
}

const kindsOf = (results: readonly { readonly kind: string }[]): string[] =>
  results.map((result) => result.kind).sort()

const others = (kind: string): string[] => Array(CROWD - 1).fill(kind)
const ONE_DONE = ['done', ...others('repeated')]

/** Another transaction holds the name and may still run its command. */
const nameTaken = (name: string): string =>
  `INSERT INTO idempotency (account_id, name, fingerprint, subject, at_ms) VALUES ('default', '${name}', '', '', ${NOON})`

const keyLocked = (id: string): string =>
  `SELECT 1 FROM budget WHERE id = (SELECT budget_id FROM api_key WHERE id = '${id}') FOR UPDATE`

shared('creations with one name on several nodes create one key', 'caller', async ({ stores, crowd }) => {
  const created = await crowd(nameTaken('n'), (store, i) =>
    store.createKey(newKey(`k${i}`), once('n'), SYSTEM),
  )
  assert.deepEqual(kindsOf(created), ONE_DONE)
  assert.equal(new Set(created.map((result) => 'value' in result && result.value.id)).size, 1)
  const query = { accountId: 'default', status: null, search: null, after: null, limit: 100, atMs: NOON }
  assert.equal((await stores[0].listKeys(query)).rows.length, 1)
})

shared('a repeated command does not wait for the row of its name', 'caller', async (subject) => {
  const [one, other] = subject.stores
  await one.createKey(newKey('a'), once('n'), SYSTEM)
  await subject.whileLocked('SELECT 1 FROM idempotency FOR UPDATE', async () => {
    assert.equal((await other.createKey(newKey('b'), once('n'), SYSTEM)).kind, 'repeated')
  })
})

shared(
  'of concurrent rotations without a name that end the old key, one succeeds',
  'caller',
  async (subject) => {
    await addKey(subject.stores[0], 'a')
    const rotated = await subject.crowd(keyLocked('key_a'), (store, i) =>
      store.rotateKey('default', 'key_a', successor(`b${i}`, { oldExpiresAtMs: NOON }), null, SYSTEM),
    )
    assert.deepEqual(kindsOf(rotated), ['done', ...others('final')])
  },
)

shared(
  'concurrent updates all apply, and the first revocation is final',
  'caller',
  async ({ stores, crowd }) => {
    await addKey(stores[0], 'a', { expiresAtMs: NOON + HOUR_MS })
    const edits = await crowd(keyLocked('key_a'), (store, i) =>
      i % 2 === 0
        ? store.updateKey('default', 'key_a', { monthlyBudgetNanos: 5n }, NOON, SYSTEM)
        : store.updateKey('default', 'key_a', { name: 'renamed' }, NOON, SYSTEM),
    )
    assert.deepEqual(kindsOf(edits), ['changed', ...others('changed')])
    const edited = await stores[0].getKey('default', 'key_a', NOON)
    assert.deepEqual([edited?.name, edited?.monthlyBudgetNanos], ['renamed', 5n])

    const revoked = await crowd(keyLocked('key_a'), (store, i) =>
      store.revokeKey('default', 'key_a', NOON + i, SYSTEM),
    )
    const instants = new Set(revoked.map((key) => key?.revokedAtMs))
    assert.deepEqual([...instants], [(await stores[0].getKey('default', 'key_a', NOON))?.revokedAtMs])
  },
)

shared('an update after a revocation changes nothing', 'caller', async ({ stores, crowd }) => {
  await addKey(stores[0], 'a')
  const answers = await crowd(keyLocked('key_a'), async (store, i) => {
    if (i === 0) return (await store.revokeKey('default', 'key_a', NOON, SYSTEM))?.name
    const edit = await store.updateKey('default', 'key_a', { name: `x${i}` }, NOON, SYSTEM)
    return edit.kind === 'none' ? edit.kind : edit.key.name
  })
  const key = await stores[0].getKey('default', 'key_a', NOON)
  assert.equal(key?.revokedAtMs, NOON)
  assert.equal(answers[0], key.name, 'the stored record equals the answer to the revocation')
})

shared('nodes that start together agree on the bootstrap admin key', 'caller', async ({ stores, crowd }) => {
  const first = `INSERT INTO admin_key (id, role, name, digest, prefix, last4, created_at_ms, bootstrap)
    VALUES ('adm_0', 'operator', '', '', '', '', 0, true)`
  const next = 'SELECT 1 FROM admin_key FOR UPDATE'
  const starts: [obstacle: string, values: string[]][] = [
    [first, ['one']],
    [next, ['one', 'two']],
    [next, ['three', 'one']],
  ]
  for (const [obstacle, values] of starts) {
    await crowd(obstacle, (store, i) => {
      const name = values[i % values.length] ?? ''
      const operator = { role: 'operator', accountId: null, bootstrap: true } as const
      return store.createAdminKey({ ...newKey(name), id: `adm_${name}_${i}`, ...operator }, SYSTEM)
    })
    const usable = (await stores[1].listAdminKeys(EVERY)).rows.filter((admin) => admin.revokedAtMs === null)
    assert.equal(usable.length, 1)
    assert.ok(usable[0] && values.includes(usable[0].name))
  }
  assert.equal((await stores[0].listAdminKeys(EVERY)).rows.length, 3)
})

shared('concurrent commands credit a call back once', 'caller', async ({ stores, crowd }) => {
  const [one] = stores
  await addKey(one, 'a')
  const ids = Array.from({ length: 20 }, (_, i) => `req_${i}`)
  await Promise.all(ids.map((id) => one.admit(opening(id, 'a'))))
  await Promise.all(ids.map((id) => one.settle(closing(id, { costNanos: 3n }))))
  // The commands name the calls in different orders.
  const results = await crowd("SELECT 1 FROM call WHERE id = 'req_9' FOR UPDATE", (store, i) => {
    const order = i % 3 === 0 ? ids : i % 3 === 1 ? ids.toReversed() : ids.slice(i)
    return store.creditBack(creditBackOf(order), null)
  })
  const credited = results.flatMap((result) => (result.kind === 'done' ? result.value.credited : []))
  assert.deepEqual(credited.toSorted(), ids.toSorted())
  assert.equal((await one.getBalance('default')).creditedNanos, 60n)
})

shared('the clock of the database decides whether a key is usable', 'database', async (subject) => {
  const [store] = subject.stores
  const nowMs = await subject.databaseMs()
  await addKey(store, 'living', { expiresAtMs: nowMs + HOUR_MS })
  await addKey(store, 'expired')
  await store.updateKey('default', 'key_expired', { expiresAtMs: nowMs - 1 }, nowMs, SYSTEM)
  const born = newKey('born', { expiresAtMs: nowMs - 1, createdAtMs: nowMs - HOUR_MS })
  assert.equal((await store.createKey(born, null, SYSTEM)).kind, 'already_expired')
  for (const atMs of [0, nowMs - 9 * HOUR_MS, nowMs + 9 * HOUR_MS]) {
    const seen = []
    for (const name of ['living', 'expired']) {
      const edit = await store.updateKey('default', `key_${name}`, { name: 'x' }, atMs, SYSTEM)
      const found = await store.lookUpKey(digestOf(name), atMs)
      const call = await store.admit(opening(`req_${name}_${atMs}`, name, { atMs }))
      seen.push([edit.kind, found.kind, call.kind])
    }
    assert.deepEqual(seen, [
      ['changed', 'api_key', 'admitted'],
      ['final', 'refused', 'refused'],
    ])
    const end = { createdAtMs: atMs, oldExpiresAtMs: atMs }
    const rotate = async (name: string) =>
      (await store.rotateKey('default', `key_${name}`, successor(`${name} next`, end), null, SYSTEM)).kind
    assert.equal(await rotate('expired'), 'final')
    // The expiry of an old key is relative to the database’s clock.
    const old = `old${atMs}`
    await addKey(store, old)
    assert.equal(await rotate(old), 'done')
    assert.equal((await store.lookUpKey(digestOf(old), atMs)).kind, 'refused')
    assert.equal((await store.lookUpKey(digestOf(`${old} next`), atMs)).kind, 'api_key')
    assert.equal((await store.revokeKey('default', 'key_expired', atMs, SYSTEM))?.revokedAtMs, null)
    const query = { accountId: 'default', search: null, after: null, limit: 9, atMs } as const
    const listed = async (status: 'usable' | 'expired') =>
      (await store.listKeys({ ...query, status })).rows.map((key) => key.id)
    assert.ok((await listed('usable')).includes('key_living'))
    assert.ok((await listed('expired')).includes('key_expired'))
  }
  const revoked = await store.revokeKey('default', 'key_living', 0, SYSTEM)
  assert.ok((revoked?.revokedAtMs ?? 0) >= nowMs)
})
