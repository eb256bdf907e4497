import assert from 'node:assert/strict'
import { crc32 } from 'node:zlib'
import { Secret } from '../../src/kernel/secret.ts'
import { claimsToBeOurs, keyKindOf, mintKey, shownParts } from '../../src/keys/key-format.ts'
import { test } from '../support/suite.ts'

test('a key has its marker, 43 random characters and 6 of checksum', () => {
  assert.match(mintKey('svc', 'live').reveal(), /^svc_live_[0-9A-Za-z]{49}$/)
  assert.match(mintKey('svc', 'admin').reveal(), /^svc_admin_[0-9A-Za-z]{49}$/)
  assert.match(mintKey('acme', 'live').reveal(), /^acme_live_[0-9A-Za-z]{49}$/)
})

test('the checksum is the base-62 CRC-32 of everything before it', () => {
  const key = mintKey('svc', 'live').reveal()
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const value = [...key.slice(-6)].reduce((sum, char) => sum * 62 + alphabet.indexOf(char), 0)
  assert.equal(value, crc32(key.slice(0, -6)))
})

test('minted keys are recognised by kind', () => {
  assert.equal(keyKindOf(mintKey('svc', 'live').reveal(), 'svc'), 'live')
  assert.equal(keyKindOf(mintKey('svc', 'admin').reveal(), 'svc'), 'admin')
})

test('a key with any one character changed is not a key', () => {
  const key = mintKey('svc', 'live').reveal()
  for (let i = 0; i < key.length; i++) {
    const other = key[i] === 'x' ? 'y' : 'x'
    assert.equal(keyKindOf(key.slice(0, i) + other + key.slice(i + 1), 'svc'), null, `character ${i}`)
  }
})

test('an overlong, short, foreign or hostile string is not a key', () => {
  const key = mintKey('svc', 'live').reveal()
  const wrong = ['', 'svc_live_', `${key}x`, key.slice(0, -1), ` ${key}`, mintKey('acme', 'live').reveal()]
  for (const text of [...wrong, "' OR '1'='1", '%', 'svc_live_\0', 'é'.repeat(58), 'x'.repeat(8_192)]) {
    assert.equal(keyKindOf(text, 'svc'), null, JSON.stringify(text.slice(0, 80)))
  }
})

test('two thousand keys are all different', () => {
  const keys = new Set(Array.from({ length: 2_000 }, () => mintKey('svc', 'live').reveal()))
  assert.equal(keys.size, 2_000)
})

test('a malformed key with our marker still counts as ours', () => {
  assert.equal(claimsToBeOurs('svc_live_nonsense', 'svc'), true)
  assert.equal(claimsToBeOurs('sk-ant-api03-x', 'svc'), false)
})

test('only the first 16 and the last 4 characters of a key are shown', () => {
  const key = mintKey('svc', 'live')
  assert.deepEqual(shownParts(key, 'svc'), {
    prefix: key.reveal().slice(0, 16),
    last4: key.reveal().slice(-4),
  })
})

test("only the end of an operator's own admin key is shown, because its start may be guessable", () => {
  assert.deepEqual(shownParts(new Secret('correct-horse-battery-staple-2026'), 'svc'), {
    prefix: '',
    last4: '2026',
  })
})

test('a secret is not printed', async () => {
  const { inspect } = await import('node:util')
  const secret = mintKey('svc', 'live')
  for (const text of [
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ secret }),
    inspect(secret, { showHidden: true }),
  ]) {
    assert.doesNotMatch(text, /svc_live/)
  }
})
