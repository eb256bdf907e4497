import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'
import { assertRefused, assertRefusedAndClosed, attack } from './attack.ts'

const pair = await startPair()
closeAfter(pair)

for (const surface of surfaces) {
  const key = pair.gateway.apiKey

  test(`${surface.name}: credentials in other headers do not count, and malformed ones are refused`, async () => {
    for (const line of [`x_api_key: ${key}`, `X-Api-Keys: ${key}`, `authorization_: Bearer ${key}`]) {
      const version = surface.name === 'messages' ? ['anthropic-version: 2023-06-01'] : []
      const request = sized(`POST ${surface.readEndpoint} HTTP/1.1`, ['Host: h', ...version, line], '{}')
      assertOwnError(await assertRefused(pair, request, [401]), surface, 401, 'invalid_api_key')
    }
    for (const line of [
      `X-Api-Key : ${key}`,
      `Authorization\t: Bearer ${key}`,
      ` Authorization: Bearer ${key}`,
    ]) {
      await assertRefusedAndClosed(
        pair,
        sized(`POST ${surface.readEndpoint} HTTP/1.1`, ['Host: h', line], '{}'),
      )
    }
  })

  test(`${surface.name}: keys with attack strings are 401, and the response does not repeat them`, async () => {
    const attacks = [
      "' OR '1'='1",
      '%',
      '"; DROP TABLE keys; --',
      `svc_live_${'a'.repeat(8_000)}`,
      'svc_live_\xf0\x9f\x98\x80',
      'svc_live_%0d%0aX-Injected: 1',
      '../../etc/passwd',
      '__proto__',
      `${key.slice(0, 40)}${'0'.repeat(key.length - 40)}`,
    ]
    for (const value of attacks) {
      const request = sized(
        `POST ${surface.readEndpoint} HTTP/1.1`,
        ['Host: h', ...surface.lines(value)],
        '{}',
      )
      const reply = await assertRefused(pair, request, [401])
      assertOwnError(reply, surface, 401, 'invalid_api_key')
      assert.ok(!reply.body.toString('latin1').includes(value))
      assert.deepEqual(headerValues(reply.headerLines, 'x-injected'), [])
    }
  })

  test(`${surface.name}: heads up to the limit pass, larger ones or ones with too many lines are 431`, async () => {
    const passes = [
      [`X-Long: ${'a'.repeat(17_000)}`],
      [`X-Long: ${'a'.repeat(60_000)}`],
      Array.from({ length: 300 }, (_, at) => `X-${at}: 1`),
      Array.from({ length: 990 }, (_, at) => `X-${at}: 1`),
    ]
    for (const lines of passes) {
      const reply = await pair.exchange(pair.request(surface, { lines, body: surface.jsonBody }))
      assert.equal(reply.status, 200)
    }
    const fails = [
      [`X-Long: ${'a'.repeat(66_000)}`],
      [`X-Long: ${'a'.repeat(1_000_000)}`],
      Array.from({ length: 70 }, () => `X-Long: ${'a'.repeat(1_000)}`),
      Array.from({ length: 1_001 }, (_, at) => `X-${at}: 1`),
      Array.from({ length: 2_500 }, () => 'a: 1'),
    ]
    for (const lines of fails) {
      // The key follows the surplus lines: a parser that drops lines would see a call without a key.
      for (const parts of [{ lines }, { before: lines }]) {
        const request = pair.request(surface, { ...parts, body: surface.jsonBody })
        const reply = await assertRefusedAndClosed(pair, request, [431])
        assertOwnError(reply, surface, 431, 'head_too_large')
      }
    }
  })

  test(`${surface.name}: an overlong target is refused and never forwarded`, async () => {
    await assertRefusedAndClosed(
      pair,
      pair.request(surface, { method: 'GET', target: `/v1/models?${'a'.repeat(70_000)}` }),
      [414, 431],
    )
  })

  test(`${surface.name}: encoded line breaks in a path or query stay encoded and add no header line`, async () => {
    for (const target of ['/v1/x%0d%0aX-Injected:%201', '/v1/x?a=%0D%0AX-Injected:%201']) {
      const { reply, client, reached } = await attack(pair, {
        bytes: pair.request(surface, { method: 'GET', target }),
      })
      assert.equal(reply.status, 200)
      assert.equal(reached[0]?.target, target)
      assert.deepEqual(headerValues(reply.headerLines, 'x-injected'), [])
      assert.deepEqual(headerValues(reached[0]?.headerLines ?? [], 'x-injected'), [])
      client.leave()
      const refused = await pair.exchange(
        message(`GET ${target} HTTP/1.1`, ['Host: h', ...surface.lines('svc_live_x')]),
      )
      assert.equal(refused.status, 401)
      assert.deepEqual(headerValues(refused.headerLines, 'x-injected'), [])
    }
  })

  test(`${surface.name}: interim header lines with our prefix do not reach the client`, async () => {
    const hints = message('HTTP/1.1 103 Early Hints', ['x-svc-request-id: req_forged', 'Link: </a>'])
    pair.upstream.queue([{ send: Buffer.concat([hints, sized('HTTP/1.1 200 OK', [], '{}')]) }])
    const got = await pair.exchange(pair.request(surface, { body: surface.jsonBody }))
    assert.deepEqual(got.interim[0]?.headerLines, ['Link: </a>'])
  })
}
