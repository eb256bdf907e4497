import assert from 'node:assert/strict'
import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { Idempotency } from '../../../src/kernel/idempotency.ts'
import { limits } from '../../../src/kernel/limits.ts'
import type { NewCredit } from '../../../src/ledger/account.ts'
import { emitted } from './event-fixtures.ts'
import {
  addKey,
  closing,
  digestOf,
  doneValue,
  NOON,
  newKey,
  type OpenStoreUnderTest,
  opening,
} from './fixtures.ts'
import { promisesOf } from './promise.ts'

function once(name: string, command: string, more: Partial<Idempotency> = {}): Idempotency {
  return { accountId: 'default', name, fingerprint: digestOf(command), atMs: NOON, ...more }
}

function credit(id: string, amountNanos: bigint): NewCredit {
  return { id, accountId: 'default', amountNanos, reason: 'top-up', actor: SYSTEM, atMs: NOON }
}

export function onceConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const test = promisesOf(storeName, openStore)

  test('two concurrent creations with one name create one key', async (subject) => {
    const { store } = subject
    const results = await Promise.all(
      ['a', 'b', 'c'].map((name) => store.createKey(newKey(name), once('n', 'create'), SYSTEM)),
    )
    // On PostgreSQL any of the three may run first.
    const kinds = results.map((result) => result.kind).sort()
    assert.deepEqual(kinds, ['done', 'repeated', 'repeated'])
    assert.equal(new Set(results.map((result) => 'value' in result && result.value.id)).size, 1)
    assert.equal((await subject.rows('api_key')).length, 1)
  })

  test("a repeated creation returns the key's current record", async ({ store }) => {
    await store.createKey(newKey('a'), once('n', 'create'), SYSTEM)
    await store.updateKey('default', 'key_a', { name: 'renamed' }, NOON, SYSTEM)
    await store.revokeKey('default', 'key_a', NOON, SYSTEM)
    await store.admit(opening('req_1', 'a'))
    const repeated = await store.createKey(newKey('b'), once('n', 'create', { atMs: NOON + 1 }), SYSTEM)
    assert.deepEqual(repeated, {
      kind: 'repeated',
      value: await store.getKey('default', 'key_a', NOON + 1),
    })
    assert.ok(repeated.kind === 'repeated' && repeated.value.revokedAtMs === NOON)
  })

  test('a different request under the same name is a conflict and changes nothing', async (subject) => {
    const { store } = subject
    await store.createKey(newKey('a'), once('n', 'create'), SYSTEM)
    assert.deepEqual(await store.createKey(newKey('b'), once('n', 'create otherwise'), SYSTEM), {
      kind: 'conflict',
    })
    assert.deepEqual(await store.addCredit(credit('crd_1', 5n), once('n', 'credit')), { kind: 'conflict' })
    assert.equal((await subject.rows('api_key')).length, 1)
    assert.deepEqual(await subject.rows('credit'), [])
    assert.equal((await store.getBalance('default')).creditEnforced, false)
  })

  test('commands of different kinds do not share names, even with equal fingerprints', async (subject) => {
    const { store } = subject
    await store.createKey(newKey('a'), once('n', 'same'), SYSTEM)
    assert.deepEqual(await store.addCredit(credit('crd_1', 5n), once('n', 'same')), { kind: 'conflict' })
    assert.deepEqual(await subject.rows('credit'), [])
  })

  test('each account has its own names', async (subject) => {
    const { store } = subject
    await subject.addAccount('other')
    await store.createKey(newKey('a'), once('n', 'create'), SYSTEM)
    const other = { accountId: 'other' }
    assert.equal((await store.createKey(newKey('b', other), once('n', 'create', other), SYSTEM)).kind, 'done')
    assert.equal(
      (await store.createKey(newKey('c', other), once('n', 'create', other), SYSTEM)).kind,
      'repeated',
    )
  })

  test('a command without a name always runs', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    await addKey(store, 'b')
    doneValue(await store.addCredit(credit('crd_1', 5n), null))
    doneValue(await store.addCredit(credit('crd_2', 5n), null))
    assert.equal((await store.getBalance('default')).creditedNanos, 10n)
    assert.deepEqual(await subject.rows('idempotency'), [])
  })

  test('a name is remembered for one day', async ({ store }) => {
    const at = (ms: number) => once('n', 'create', { atMs: NOON + ms })
    await store.createKey(newKey('a'), at(0), SYSTEM)
    assert.equal((await store.createKey(newKey('b'), at(limits.onceMs - 1), SYSTEM)).kind, 'repeated')
    assert.equal((await store.createKey(newKey('b'), at(limits.onceMs), SYSTEM)).kind, 'done')
    assert.equal((await store.createKey(newKey('c'), at(limits.onceMs + 1), SYSTEM)).kind, 'repeated')
    // An expired name may be used for another command.
    const later = once('n', 'something else', { atMs: NOON + 2 * limits.onceMs })
    assert.equal((await store.createKey(newKey('c'), later, SYSTEM)).kind, 'done')
  })

  test('expired names are deleted', async (subject) => {
    const { store } = subject
    const name = (i: number) => once(`n${i}`, 'credit', { atMs: NOON + i })
    const add = (i: number) => store.addCredit(credit(`crd_${i}`, 1n), name(i))
    // Not all at once: on a slow machine the last command would time out waiting for a connection.
    for (const from of [0, 50, 100]) await Promise.all(Array.from({ length: 50 }, (_, i) => add(from + i)))
    assert.equal((await subject.rows('idempotency')).length, 150)
    const late = NOON + 100 + limits.onceMs
    await store.pruneEvents(late, 1_000)
    // The names of the last 49 ms are younger than a day.
    assert.equal((await subject.rows('idempotency')).length, 49)
  })

  test('a failed command does not use its name', async ({ store }) => {
    await addKey(store, 'a')
    await assert.rejects(store.createKey(newKey('a'), once('n', 'create'), SYSTEM))
    assert.equal((await store.createKey(newKey('b'), once('n', 'create'), SYSTEM)).kind, 'done')
  })

  test('a repeated rotation returns its key even after the old key has ended', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const rotate = (name: string, atMs: number) =>
      store.rotateKey(
        'default',
        'key_a',
        { ...newKey(name), createdAtMs: atMs, oldExpiresAtMs: NOON + 5 },
        once('n', 'rotate', { atMs }),
        SYSTEM,
      )
    const both = await Promise.all([rotate('b', NOON), rotate('c', NOON)])
    const [first, second] = both.toSorted((one, other) => one.kind.localeCompare(other.kind))
    assert.ok(first?.kind === 'done')
    assert.deepEqual(second, { ...first, kind: 'repeated' })
    const late = await rotate('d', NOON + 60)
    assert.ok(late.kind === 'repeated' && late.value.id === first.value.id)
    assert.equal((await subject.rows('api_key')).length, 2)
  })

  test('a refused rotation does not use its name', async ({ store }) => {
    await addKey(store, 'a')
    await addKey(store, 'b')
    await store.revokeKey('default', 'key_a', NOON, SYSTEM)
    const rotate = (id: string, name: string) =>
      store.rotateKey(
        'default',
        id,
        { ...newKey(name), createdAtMs: NOON, oldExpiresAtMs: null },
        once('n', 'rotate'),
        SYSTEM,
      )
    assert.equal((await rotate('key_a', 'c')).kind, 'final')
    assert.equal((await rotate('key_x', 'c')).kind, 'none')
    assert.equal((await rotate('key_b', 'c')).kind, 'done')
  })

  test('a credit is added once per name, and a repetition returns the balance of that time', async (subject) => {
    const { store } = subject
    await addKey(store, 'a')
    const answers = await Promise.all(
      ['crd_1', 'crd_2'].map((id) => store.addCredit(credit(id, 10_000n), once('n', 'credit'))),
    )
    // PostgreSQL runs the commands on two connections, so either may be first.
    const [{ id = '' } = {}] = await subject.rows('credit')
    const value = { ...credit(String(id), 10_000n), kind: 'top_up', balanceAfterNanos: 10_000n }
    assert.deepEqual(
      answers.toSorted((one, other) => one.kind.localeCompare(other.kind)),
      [
        { kind: 'done', value },
        { kind: 'repeated', value },
      ],
    )
    await store.admit(opening('req_1', 'a'))
    await store.settle(closing('req_1'))
    assert.deepEqual(await store.addCredit(credit('crd_3', 10_000n), once('n', 'credit')), {
      kind: 'repeated',
      value,
    })
    assert.equal((await subject.rows('credit')).length, 1)
  })

  test('an account change and its event are stored together or not at all', async ({ store, exec, rows }) => {
    const id = 'acct_1'
    const change = [
      () => store.createAccount({ id, name: 'one', createdAtMs: NOON }, SYSTEM, null),
      () => store.updateAccount(id, { name: 'two', monthlyBudgetNanos: 5n }, SYSTEM, NOON),
      () => store.updateAccount(id, { status: 'suspended' }, SYSTEM, NOON),
    ]
    for (const [at, work] of change.entries()) {
      const before = await rows('account')
      await exec('ALTER TABLE event RENAME TO event_away')
      await assert.rejects(work())
      await exec('ALTER TABLE event_away RENAME TO event')
      assert.deepEqual([await rows('account'), (await rows('event')).length], [before, at])
      await work()
    }
    const types = (await emitted(store)).map(({ type }) => type)
    assert.deepEqual(types, ['account.created', 'account.updated', 'account.suspended'])
    assert.equal((await store.getAccount(id, NOON))?.status, 'suspended')
  })
}
