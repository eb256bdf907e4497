import assert from 'node:assert/strict'
import { Secret } from '../../src/kernel/secret.ts'
import { createKeyDigest } from '../../src/keys/secrets.ts'
import { test } from '../support/suite.ts'

test('a digest matches RFC 4231', () => {
  const digest = (pepper: string, key: string) => createKeyDigest(new Secret(pepper))(key).toString('hex')
  assert.equal(
    digest('\u000b'.repeat(20), 'Hi There'),
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  )
  assert.equal(
    digest('Jefe', 'what do ya want for nothing?'),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
})
