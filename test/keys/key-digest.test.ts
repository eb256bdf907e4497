import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Secret } from '../../src/kernel/secret.ts'
import { createKeyDigest } from '../../src/keys/secrets.ts'
import { anyCharacter } from '../support/any-character.ts'
import { test } from '../support/suite.ts'

test('a digest is HMAC-SHA-256 of the key under the pepper, for any values', () => {
  const text = fc.oneof(
    fc.string({ minLength: 1, maxLength: 300, unit: anyCharacter }),
    fc.string({ minLength: 1, maxLength: 300 }),
  )
  fc.assert(
    fc.property(text, fc.array(text, { minLength: 1, maxLength: 4 }), (pepper, keys) => {
      const digest = createKeyDigest(new Secret(pepper))
      for (const key of keys) {
        assert.deepEqual(digest(key), createHmac('sha256', Buffer.from(pepper)).update(key).digest())
      }
    }),
  )
})

test('a digest matches RFC 4231, for any length of pepper and key', () => {
  const digest = (pepper: string, key: string) => createKeyDigest(new Secret(pepper))(key).toString('hex')
  assert.equal(
    digest('\u000b'.repeat(20), 'Hi There'),
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  )
  assert.equal(
    digest('Jefe', 'what do ya want for nothing?'),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
  // A shorter pepper than 64 bytes is padded, a longer one hashed. Long keys skip the common buffer.
  for (const pepperLength of [1, 63, 64, 65, 131, 300]) {
    for (const keyLength of [0, 1, 60, 255, 256, 257, 300, 2_000]) {
      for (const character of ['a', 'é', '\u20ac', '\ud800']) {
        const [pepper, key] = [character.repeat(pepperLength), character.repeat(keyLength)]
        const expected = createHmac('sha256', Buffer.from(pepper)).update(key).digest('hex')
        assert.equal(digest(pepper, key), expected, `${pepperLength}, ${keyLength}, ${character}`)
      }
    }
  }
})

test('a short key after a longer one is digested without its rest', () => {
  const digest = createKeyDigest(new Secret('pepper'))
  const before = digest('short').toString('hex')
  digest('a key that is a good deal longer')
  assert.equal(digest('short').toString('hex'), before)
})

test('a digest does not change when another one is computed', () => {
  const digest = createKeyDigest(new Secret('pepper'))
  const first = digest('one')
  const before = first.toString('hex')
  digest('two')
  assert.equal(first.toString('hex'), before)
})
