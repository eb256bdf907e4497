import assert from 'node:assert/strict'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { test } from '../support/suite.ts'

const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')
const secret = new Secret('whsec_c2VjcmV0')

test('a sealed secret opens for its record, and its bytes do not contain its text', () => {
  const sealed = sealer.seal(secret, 'wh_1')
  assert.equal(sealer.open(sealed, 'wh_1').reveal(), secret.reveal())
  assert.ok(!sealed.includes(secret.reveal()))
  assert.ok(!sealer.seal(secret, 'wh_1').equals(sealed), 'each has a different nonce')
})

test('a sealed secret does not open for another record, pepper or purpose, or after a change', () => {
  const sealed = sealer.seal(secret, 'wh_1')
  assert.throws(() => sealer.open(sealed, 'wh_2'))
  assert.throws(() => createSecretSealer(new Secret('another pepper of some'), 'test').open(sealed, 'wh_1'))
  assert.throws(() => createSecretSealer(new Secret('a pepper of some length'), 'other').open(sealed, 'wh_1'))
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.throws(() => sealer.open(changed, 'wh_1'))
  }
})
