import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { Secret } from '../../src/kernel/secret.ts'
import { createKeyDigest } from '../../src/keys/key-digest.ts'

test('a digest is HMAC-SHA-256 of the key under the pepper, whatever either of them is', () => {
  const text = fc.oneof(
    fc.string({ minLength: 1, maxLength: 300, unit: 'binary' }),
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

test('a digest does not change when another one is made', () => {
  const digest = createKeyDigest(new Secret('pepper'))
  const first = digest('one')
  const before = first.toString('hex')
  digest('two')
  assert.equal(first.toString('hex'), before)
})
