import assert from 'node:assert/strict'
import type { Actor } from '../../../src/kernel/actor.ts'
import type { NewPersonKey, PersonRecord, SignIn } from '../../../src/keys/person-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { emitted } from './event-fixtures.ts'
import { digestOf, NOON, newKey } from './fixtures.ts'

export const DAY_MS = 86_400_000
export const ADMIN: Actor = { kind: 'admin_key', id: 'adm_1', name: 'admin' }

export const signIn = (name: string, more: Partial<SignIn> = {}): SignIn => ({
  ...{ newId: `per_${name}`, issuer: 'https://login.example', subject: `sub ${name}` },
  ...{ accountId: 'default', email: `${name}@example.com`, name: `Name ${name}`, role: 'member' },
  ...{ refreshToken: null, atMs: NOON },
  ...more,
})

export async function addPerson(
  store: Store,
  name: string,
  more: Partial<SignIn> = {},
): Promise<PersonRecord> {
  const answer = await store.signInPerson(signIn(name, more))
  assert.ok(answer.kind === 'signed_in', answer.kind)
  return answer.person
}

export const newPersonKey = (
  name: string,
  personId: string,
  more: Partial<NewPersonKey> = {},
): NewPersonKey => {
  const { id, digest, prefix, last4 } = newKey(name)
  const own = { id, digest, prefix, last4, name, personId, accountId: 'default' }
  return { ...own, createdAtMs: NOON, expiresAtMs: null, ...more }
}

export const createKey = (store: Store, name: string, personId: string, more: Partial<NewPersonKey> = {}) =>
  store.createPersonKey(newPersonKey(name, personId, more), null, ADMIN)

export async function madeKey(store: Store, name: string, personId: string) {
  const answer = await createKey(store, name, personId)
  assert.ok(answer.kind === 'done', answer.kind)
  return answer.value
}

export async function personOf(store: Store, name: string, accountId = 'default'): Promise<PersonRecord> {
  return (await store.getPerson(accountId, `per_${name}`, NOON)) ?? assert.fail(name)
}

export const openSession = (store: Store, name: string, personId: string) =>
  store.openPersonSession({ digest: digestOf(name), personId, atMs: NOON, lifeMs: DAY_MS, sessionsMax: 10 })

export const rotate = (store: Store, id: string, name: string, oldExpiresAtMs: number | null) => {
  const { digest, prefix, last4 } = newKey(name)
  const successor = { id: `key_${name}`, digest, prefix, last4, createdAtMs: NOON, oldExpiresAtMs }
  return store.rotateKey('default', id, successor, null, ADMIN)
}

export const typesOf = async (store: Store) => (await emitted(store)).map(({ type }) => type)
