import assert from 'node:assert/strict'
import { alsoRedacting, createRedact, redactBody, redactEncoded, Secret } from '../../src/kernel/secret.ts'
import { test } from '../support/suite.ts'

const redact = createRedact('svc', ['an (odd) secret', 'sk-provider'])
const key = `svc_live_${'a1B'.repeat(16)}x`

const cases: readonly [what: string, text: string, clean: string][] = [
  ['text without secrets', '/v1/models?x=50%', '/v1/models?x=50%'],
  ['a key', `/v1/${key}/x`, '/v1/svc_live_[redacted]/x'],
  ['two keys', `${key} ${key.replace('live', 'admin')}`, 'svc_live_[redacted] svc_admin_[redacted]'],
  ['a key in JSON', `{"model":"${key}"}`, '{"model":"svc_live_[redacted]"}'],
  ['a secret of another form', 'curl an (odd) secret sk-provider', 'curl [redacted] [redacted]'],
  [
    'a key with encoded characters',
    `/v1/${key.replaceAll('_', '%5f')} 100%`,
    '/v1/svc%5flive%5f[redacted] 100%',
  ],
  ['a key with escaped characters', key.replaceAll('_', '\\u005f'), 'svc\\u005flive\\u005f[redacted]'],
  ['encoded text without secrets', '/v1/a%2fb', '/v1/a%2fb'],
  ['text that cannot be decoded', '/v1/%zz', '/v1/%zz'],
]
for (const [what, text, clean] of cases) {
  test(`${what} is recorded as ${clean}`, () => assert.equal(redact(text), clean))
}

test('redacting again changes nothing', () => {
  for (const [, text] of cases) assert.equal(redact(redact(text)), redact(text))
})

test("other providers' credentials are removed from a body too", () => {
  const body = JSON.stringify({
    mcp_servers: [{ url: 'https://x', authorization_token: 'their-token' }],
    headers: { Authorization: 'Bearer abcdefghijklmnopqrstuvwxyz' },
    hook: `whsec_${'c3+/'.repeat(10)}=`,
    content: `call it with sk-proj-${'a1'.repeat(20)} or Bearer ${'b2'.repeat(12)}, not ${key}`,
    model: 'skill-of-the-sky',
  })
  const clean = redactBody(body, redact)
  for (const secret of ['their-token', 'abcdefghij', 'a1a1', 'b2b2', 'c3', 'a1B'])
    assert.ok(!clean.includes(secret), `${secret} in ${clean}`)
  assert.equal(JSON.parse(clean).model, 'skill-of-the-sky')
})

test('a percent-encoded key, even encoded twice, is removed from recorded text', () => {
  const encode = (text: string) => `%${text.charCodeAt(0).toString(16)}`
  for (const at of [0, 2, 3, 5, 8, 9, 20, key.length - 1]) {
    const once = key.slice(0, at) + encode(key.slice(at, at + 1)) + key.slice(at + 1)
    for (const text of [once, once.replaceAll('%', '%25')])
      assert.equal(redactEncoded(`/v1/files/${text}/%2F`, redact), '/v1/files/svc_live_[redacted]//', text)
  }
  for (const text of ['/v1/a%2fb', '/v1/%zz%', '/v1/100%25'])
    assert.equal(redactEncoded(text, redact), text, 'bytes without a secret are unchanged')
  assert.equal(redactEncoded('an (odd) secret %41', redact), '[redacted] A')
})

test('secrets with a common prefix, or with ours, leave no tail', () => {
  const redactAll = createRedact('svc', ['abcdefgh', 'abcdefghSECRETTAIL', 'svc_admin_ab-cd-SECRETTAIL'])
  assert.equal(redactAll('x abcdefghSECRETTAIL y'), 'x [redacted] y')
  assert.equal(redactAll('x svc_admin_ab-cd-SECRETTAIL y'), 'x [redacted] y')
  assert.equal(redactAll('x svc_live_abc y'), 'x svc_live_[redacted] y')
})

test('a foreign credential leaves no tail after an escape', () => {
  for (const written of ['ab\\/c3/TAIL', '\\u0061b TAIL', 'ab\\\\TAIL', 'ab\\"TAIL']) {
    const clean = redactBody(`{"password":"${written}","client_secret": "","a":"b"}`, redact)
    assert.equal(clean, '{"password":"[redacted]","client_secret": "","a":"b"}', written)
  }
})

test('a secret of any form is removed from JSON, however it is escaped', () => {
  const odd = 'pl/ain+odd="key;(secret)\\x'
  const redacts = [createRedact('svc', [odd]), alsoRedacting(createRedact('svc'), new Secret(odd))]
  const escaped = JSON.stringify({ content: `key ${odd} end` })
  for (const text of [`key ${odd} end`, escaped, escaped.replaceAll('/', '\\/')])
    for (const redactOdd of redacts)
      assert.equal(redactOdd(text), text.replace(/pl.*x(?= end)/, '[redacted]'), text)
})
