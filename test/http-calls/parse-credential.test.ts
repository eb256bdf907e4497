import assert from 'node:assert/strict'
import { ConnectionMemory, type IncomingRequest } from '../../src/http/incoming-request.ts'
import { parseCredential, surfaceOf } from '../../src/http-calls/parse-credential.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { mintKey } from '../../src/keys/key-format.ts'
import { createKeyDigest } from '../../src/keys/secrets.ts'
import { test } from '../support/suite.ts'

const digestKey = createKeyDigest(new Secret('a pepper for tests'))
const bootstrap = 'the-operators-own-admin-key-of-2026'
const parts = { servicePrefix: 'svc', digestKey, bootstrapDigest: digestKey(bootstrap) }
const key = mintKey('svc', 'live').reveal()
const parse = (method: string, headers: string[], given: typeof parts, memory = new ConnectionMemory()) =>
  parseCredential({ method, headers, req: { source: { memory } } as IncomingRequest }, given)
const other = mintKey('svc', 'live').reveal()

const accepted: readonly [name: string, lines: string[]][] = [
  ['Authorization: Bearer', ['Authorization', `Bearer ${key}`]],
  ['a lower-case scheme and more blanks', ['authorization', `bearer \t ${key} `]],
  ['x-api-key', ['X-Api-Key', key]],
  ['api-key', ['api-key', key]],
  ['the same key in two headers', ['x-api-key', key, 'authorization', `Bearer ${key}`]],
  ['the same header line twice', ['x-api-key', key, 'x-api-key', key]],
  ['a dummy beside the real one', ['x-api-key', 'dummy', 'authorization', `Bearer ${key}`]],
]
for (const [name, lines] of accepted) {
  test(`a key is taken from ${name}`, () => {
    assert.deepEqual(parse('POST', lines, parts), { kind: 'key', digest: digestKey(key) })
  })
}

test('the configured admin key is recognised whatever its form', () => {
  const identity = parse('GET', ['authorization', `Bearer ${bootstrap}`], parts)
  assert.deepEqual(identity, { kind: 'key', digest: digestKey(bootstrap) })
})

const refused: readonly [name: string, code: string, lines: string[]][] = [
  ['no credential', 'invalid_api_key', []],
  ['an empty one', 'invalid_api_key', ['x-api-key', '']],
  ['Bearer and nothing', 'invalid_api_key', ['authorization', 'Bearer']],
  ['another scheme', 'invalid_api_key', ['authorization', `Basic ${key}`]],
  ['a key of a provider', 'invalid_api_key', ['x-api-key', 'sk-ant-api03-xxxx']],
  [
    'a wrong checksum',
    'invalid_api_key',
    ['x-api-key', `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`],
  ],
  ['SQL', 'invalid_api_key', ['authorization', "Bearer ' OR '1'='1"]],
  ['an underscore name', 'invalid_api_key', ['x_api_key', key]],
  ['two keys in two headers', 'bad_request', ['x-api-key', key, 'authorization', `Bearer ${other}`]],
  ['two lines of one header', 'bad_request', ['x-api-key', key, 'x-api-key', other]],
  ['two header lines with different values', 'bad_request', ['x-api-key', key, 'X-API-Key', 'dummy']],
]
for (const [name, code, lines] of refused) {
  test(`${name} is refused with ${code}`, () => {
    const identity = parse('POST', lines, parts)
    assert.equal(identity.kind === 'refused' && identity.refusal.code, code)
  })
}

test('a key without "Bearer" is refused with the form to send', () => {
  for (const [name, value] of [
    ['an API key', key],
    ['the configured admin key', bootstrap],
  ] as const) {
    const identity = parse('GET', ['Authorization', value], parts)
    assert.match(
      identity.kind === 'refused' ? identity.refusal.message : '',
      /"Authorization: Bearer <key>"/,
      name,
    )
  }
})

test('malformed and unknown keys get the same message', () => {
  const malformed = parse('POST', ['x-api-key', 'svc_live_x'], parts)
  const foreign = parse('POST', ['x-api-key', 'sk-x'], parts)
  assert.deepEqual(malformed, { ...foreign, hasKey: true })
})

const preflight = ['Origin', 'https://app.example', 'Access-Control-Request-Method', 'POST']

test('a request with a credential is not a preflight', () => {
  assert.equal(parse('OPTIONS', preflight, parts).kind, 'preflight')
  assert.equal(parse('OPTIONS', [...preflight, 'x-api-key', 'nonsense'], parts).kind, 'refused')
  assert.equal(parse('POST', preflight, parts).kind, 'refused')
  assert.equal(parse('OPTIONS', preflight.slice(0, 2), parts).kind, 'refused')
})

test('on a preflight the announced headers choose the surface', () => {
  const announce = (names: string) => [...preflight, 'Access-Control-Request-Headers', names]
  assert.equal(surfaceOf('/v1/models', 'OPTIONS', announce('Authorization, Anthropic-Version')), 'messages')
  assert.equal(surfaceOf('/v1/models', 'OPTIONS', announce('x-api-key')), 'messages')
  assert.equal(surfaceOf('/v1/models', 'OPTIONS', announce('authorization')), 'chat')
  assert.equal(surfaceOf('/v1/models', 'GET', announce('x-api-key')), 'chat')
})
