import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Secret } from '../../src/kernel/secret.ts'
import type { PersonRole } from '../../src/kernel/vocabulary.ts'
import { createKeyDigest } from '../../src/keys/secrets.ts'
import type { TestGateway } from './gateway.ts'
import { openStoreBeside } from './open-store-beside.ts'

const DAY_MS = 86_400_000
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ulid = () => Array.from(randomBytes(26), (byte, n) => (n === 0 ? '0' : ALPHABET[byte % 32])).join('')

/** Signs a person in without an identity provider. Returns the id, and the headers of requests from the dashboard. */
export async function signInPerson(
  gateway: TestGateway,
  name: string,
  role: PersonRole = 'member',
  accountId = 'default',
) {
  const pepper = new Secret((await readFile(join(gateway.dataDir, 'pepper'), 'utf8')).trim())
  const token = randomBytes(32).toString('base64url')
  const store = await openStoreBeside(gateway)
  try {
    const identity = {
      issuer: 'https://login.example',
      subject: name,
      email: `${name.toLowerCase().replaceAll(' ', '.')}@example.com`,
      name,
    }
    const answer = await store.signInPerson({
      ...identity,
      ...{ newId: `per_${ulid()}`, accountId, role, refreshToken: null, atMs: Date.now() },
    })
    assert.ok(answer.kind === 'signed_in', answer.kind)
    const { id } = answer.person
    const digest = createKeyDigest(pepper)(`session:${token}`)
    await store.openPersonSession({
      ...{ digest, personId: id, atMs: Date.now(), lifeMs: DAY_MS, sessionsMax: 10 },
    })
    return { id, headers: { cookie: `tollgate_session=${token}`, 'sec-fetch-site': 'same-origin' } }
  } finally {
    await store.close()
  }
}
