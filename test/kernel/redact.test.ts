import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRedact } from '../../src/kernel/redact.ts'

const redact = createRedact('svc', ['an (odd) secret', 'sk-provider'])
const key = `svc_live_${'a1B'.repeat(16)}x`

const cases: readonly [what: string, text: string, clean: string][] = [
  ['text without secrets', '/v1/models?x=50%', '/v1/models?x=50%'],
  ['a key', `/v1/${key}/x`, '/v1/svc_live_[redacted]/x'],
  ['two keys', `${key} ${key.replace('live', 'admin')}`, 'svc_live_[redacted] svc_admin_[redacted]'],
  ['a key in JSON', `{"model":"${key}"}`, '{"model":"svc_live_[redacted]"}'],
  ['a secret of another form', 'curl an (odd) secret sk-provider', 'curl [redacted] [redacted]'],
  ['a key with encoded characters', `/v1/${key.replaceAll('_', '%5f')}`, '/v1/svc_live_[redacted]'],
  ['encoded text without secrets', '/v1/a%2fb', '/v1/a%2fb'],
  ['text that cannot be decoded', '/v1/%zz', '/v1/%zz'],
]
for (const [what, text, clean] of cases) {
  test(`${what} is kept as ${clean}`, () => {
    assert.equal(redact(text), clean)
  })
}

test('redacting again changes nothing', () => {
  for (const [, text] of cases) assert.equal(redact(redact(text)), redact(text))
})
