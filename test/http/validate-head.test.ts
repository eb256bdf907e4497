import assert from 'node:assert/strict'
import { hidesOwnedPath, isOwnedPath, validateTarget } from '../../src/http/validate-head.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const pass: readonly [target: string, path: string, query: string][] = [
  ['/v1/messages', '/v1/messages', ''],
  ['/v1/messages?', '/v1/messages', '?'],
  ['/v1/messages?beta=true&x=%zz+#y', '/v1/messages', '?beta=true&x=%zz+#y'],
  ['/v1/files/a%2fb', '/v1/files/a%2fb', ''],
  ['/v1/x?u=http://h/../..//', '/v1/x', '?u=http://h/../..//'],
  ['/v1/messages;x', '/v1/messages;x', ''],
  ['/V1/Messages/', '/V1/Messages/', ''],
  ['/.well-known/x', '/.well-known/x', ''],
  ['/v1/...', '/v1/...', ''],
  ['/%252e%252e/x', '/%252e%252e/x', ''],
  ['http://gate.example:8787/v1/models?x', '/v1/models', '?x'],
  ['HTTP://GATE.EXAMPLE:8787', '/', ''],
]
for (const [target, path, query] of pass) {
  test(`the target ${target} is accepted unchanged`, () => {
    assert.deepEqual(validateTarget(target, 'gate.example:8787'), { kind: 'target', target: { path, query } })
  })
}

const refused = [
  ...['', '/v1/a b', '/v1/\x7f'],
  ...words(`* v1/messages evil:443 http: ?a=b
    /v1/../admin/keys /v1/.. /.. /. /v1/. /v1/./models /./v1/models /../v1/models
    /v1/%2e%2e/admin /v1/%2E./admin /v1/.%2e /v1/%2e/models /v1/x/%2e%2E /v1/..%2fadmin /v1/x%2F%2e%2E%2fy
    /v1/%2e%2e%2fkeys /v1/x%2F. /v1%2f..%2fkeys
    //evil/v1/models /v1//messages /v1/messages// /// /v1/messages#/../admin /v1/models# /#
    /v1/%5c.. /v1/x%5cy /v1/%5C..%5Cadmin
    http://evil.example/v1/models HTTP://EVIL/v1/models http:///v1/models ftp://gate.example:8787/ file:///etc/passwd
    http://gate.example:8787.evil/v1/models http://evil@gate.example:8787/v1/models
    https://gate.example:8787@evil.example/ http://gate.example:8787/v1/../admin http://gate.example:8787//v1/models`),
  ...['/v1\\..\\admin', '/v1/x\\y', '\\v1\\models', '/\\evil/v1', 'http://gate.example:8787\\evil/v1/models'],
]
for (const target of refused) {
  test(`the target ${JSON.stringify(target)} is refused`, () => {
    assert.equal(validateTarget(target, 'gate.example:8787').kind, 'refused')
  })
}

test('an absolute target without a Host header is refused', () => {
  assert.equal(validateTarget('http://gate.example/v1/models', undefined).kind, 'refused')
})

test('isOwnedPath matches exactly our own paths', () => {
  for (const path of words(`
    /v1/keys /v1/keys/me /v1/usage /gateway/v1/x /dashboard /healthz /metrics /gateway/v1/people
    /gateway/v1/members /gateway/v1/device /gateway/sign-in /gateway/sign-in/callback /gateway/oauth/token
    /gateway/openapi.json /dashboard/device
  `)) {
    assert.equal(isOwnedPath(path), true, path)
  }
  for (const path of words(`
    /v1/key /v1/keyset /v1/usage/x /v1 / /gatewayx /V1/keys /healthz/
  `)) {
    assert.equal(isOwnedPath(path), false, path)
  }
})

test('an own path behind encoded slashes is detected', () => {
  assert.equal(hidesOwnedPath('/v1%2fkeys'), true)
  assert.equal(hidesOwnedPath('/gateway%2Fv1/credits'), true)
  assert.equal(hidesOwnedPath('/v1/files/v1%2fkeys'), false)
  assert.equal(hidesOwnedPath('/v1/keys/a%2fb'), false)
})
