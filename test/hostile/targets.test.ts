import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message } from '../support/wire-bytes.ts'
import { words } from '../support/words.ts'
import { assertRefused } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

/** One or two of each kind: test/http/validate-head.test.ts has all. */
const badTargets: Record<string, string[]> = {
  'dot segments': ['/v1/../admin/keys', '/v1/%2E%2e/keys', '/v1/x%2f..%2f..%2fkeys'],
  backslashes: ['/v1/x\\y', '/v1/%5C..%5Cadmin'],
  'empty segments': ['//evil/v1/models', '/v1//messages'],
  fragments: ['/v1/messages#/../admin'],
  'owned paths behind encoded slashes': ['/v1%2fkeys%2fkey_1', '/gateway%2Fv1/balance', '/dashboard%2fx'],
  'no path': ['*', 'v1/models', 'evil:443'],
  'the absolute form of another host': ['http://evil/v1/keys', 'http://evil@api.example.test/v1/models'],
  'the absolute form of this host with a bad path': ['http://api.example.test/v1/../admin'],
}

for (const surface of surfaces) {
  for (const [name, targets] of Object.entries(badTargets)) {
    test(`${surface.name}: a target with ${name} is refused`, async () => {
      for (const target of targets) {
        for (const suffix of target.includes('#') || target === '*' ? [''] : ['', '?a=/v1/models']) {
          const method = target === '*' ? 'OPTIONS' : 'POST'
          await assertRefused(
            pair,
            pair.request(surface, { method, target: `${target}${suffix}`, body: '{}' }),
          )
        }
      }
    })
  }

  test(`${surface.name}: invalid, multiple or missing hosts are refused on our paths and on upstream's`, async () => {
    const hosts = [
      ['Host: a/#'],
      ['Host: a/?'],
      ['Host: a/v1/models?'],
      ['Host: a b'],
      ['Host: user@a'],
      ['Host: a\\b'],
      ['Host: '],
      ['Host: a', 'Host: a'],
      ['Host: a', 'host: b'],
      ['Host: a, b/#'],
      [],
    ]
    for (const lines of hosts) {
      for (const [target, key] of [
        ['/v1/keys', pair.gateway.adminKey],
        ['/v1/models', pair.gateway.apiKey],
        [surface.readEndpoint, pair.gateway.apiKey],
      ]) {
        await assertRefused(pair, message(`GET ${target} HTTP/1.1`, [...lines, ...surface.lines(key ?? '')]))
      }
    }
    await assertRefused(
      pair,
      message('GET /v1/models HTTP/1.1', ['Host: a\0b', ...surface.lines(pair.gateway.apiKey)]),
    )
  })

  test(`${surface.name}: our own paths are never forwarded, with any key`, async () => {
    const paths = words(`
      /v1/keys /v1/keys/ /v1/keys/me/x /v1/keys/key_1/x /v1/usage /v1/usage?start=1 /gateway /gateway/
      /gateway/v1/unknown /gateway/v1/requests/req_1 /dashboard /dashboard/x /healthz /readyz /metrics
    `)
    const before = pair.upstream.receivedBytes
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS', 'QUERY']) {
        for (const lines of [[], surface.lines(pair.gateway.apiKey), surface.lines(pair.gateway.adminKey)]) {
          const reply = await pair.exchange(message(`${method} ${path} HTTP/1.1`, ['Host: h', ...lines]))
          assert.ok(reply.status >= 200 && reply.status < 500, `${method} ${path}: ${reply.statusLine}`)
        }
      }
    }
    assert.equal(pair.upstream.receivedBytes, before)
  })

  test(`${surface.name}: an unknown path is refused without a key`, async () => {
    const before = pair.upstream.receivedBytes
    for (const target of words(`
      /v1/organization/users /v1/fine_tuning/jobs /v1/files /x / /v1 /V1/keys
    `)) {
      const reply = await pair.exchange(
        message(`GET ${target} HTTP/1.1`, ['Host: h', ...surface.lines('svc_live_x')]),
      )
      assert.equal(reply.status, 401, target)
    }
    assert.equal(pair.upstream.receivedBytes, before)
  })
}
