import assert from 'node:assert/strict'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { requestLinesCompared, requestLinesExpected } from '../support/permitted-differences.ts'
import { connect } from '../support/raw-client.ts'
import { everyNth } from '../support/scale.ts'
import { emptyReply } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { type Surface, surfaceOf, surfaces } from '../support/surfaces.ts'
import { sized } from '../support/wire-bytes.ts'
import { headerName, headerValues } from '../support/wire-message.ts'

const pair = await startPair()
after(() => pair.close())

const key = pair.gateway.apiKey
const keyLines = {
  authorization: (value: string) => `Authorization: Bearer ${value}`,
  'x-api-key': (value: string) => `X-API-Key: ${value}`,
  'api-key': (value: string) => `api-key: ${value}`,
} as const
type Place = keyof typeof keyLines
const places = Object.keys(keyLines) as Place[]

/** Other headers that name an account, none of which may reach upstream. */
const selectors = [
  'OpenAI-Organization: org-client',
  'openai-project: proj_client',
  'Anthropic-Workspace-Id: wrkspc_client',
  'Cookie: session=client',
  'Proxy-Authorization: Basic Y2xpZW50',
]

const secrets = /org-client|proj_client|wrkspc_client|session=client|Y2xpZW50|svc_live_|dummy/

function* subsets<T>(items: readonly T[]): Generator<T[]> {
  for (let bits = 0; bits < 1 << items.length; bits++) {
    yield items.filter((_, at) => (bits >> at) & 1)
  }
}

/** `/v1/messages` is on one surface only; `/v1/models` is on both, so the headers decide. */
function* arrangements(): Generator<{ surface: Surface; target: string; lines: string[] }> {
  for (const place of places) {
    for (const dummies of subsets(places.filter((other) => other !== place))) {
      for (const extra of subsets(selectors)) {
        const mine = keyLines[place](key)
        const others = dummies.map((other) => keyLines[other]('dummy'))
        for (const lines of [
          [mine, 'X-A: 1', ...others, 'X-B: 2', ...extra],
          ['X-A: 1', ...others, 'X-B: 2', mine, 'x-a: 3', ...extra],
          ['X-A: 1', ...extra, 'X-B: 2', ...others, mine],
        ]) {
          yield { surface: surfaceOf('messages'), target: '/v1/messages', lines }
          yield { surface: surfaceOf('chat'), target: '/v1/chat/completions', lines }
          const versioned = ['anthropic-version: 2026-10-21', ...lines]
          yield { surface: surfaceOf('messages'), target: '/v1/models', lines: versioned }
          const hasApiKey = lines.some((line) => headerName(line) === 'x-api-key')
          yield { surface: surfaceOf(hasApiKey ? 'messages' : 'chat'), target: '/v1/models', lines }
        }
      }
    }
  }
}

test('wherever the key stands, and whatever stands beside it, upstream sees only the operator’s own', async () => {
  const every = [...arrangements()]
  assert.equal(every.length, 3 * 4 * 32 * 3 * 4)
  const isDue = everyNth(7)
  const all = every.filter((_, at) => isDue(at))
  const arrived = new Map<number, string[]>()
  pair.upstream.answer((request) => {
    arrived.set(Number(headerValues(request.headerLines, 'x-case')[0]), request.headerLines)
    return [{ send: emptyReply }]
  })
  let next = 0
  const work = Array.from({ length: 16 }, async () => {
    const client = await connect(pair.gateway)
    while (next < all.length) {
      const item = next++
      const { surface, target, lines } = all[item] ?? assert.fail()
      const sent = ['Host: h', ...lines, `x-case: ${item}`]
      const reply = await client.request(sized(`POST ${target} HTTP/1.1`, sent, '{}'))
      const shown = `${target} ${lines.join(' | ')}`
      assert.equal(reply.status, 200, `${shown}: ${reply.body.toString()}`)
      const received = arrived.get(item) ?? []
      const expected = requestLinesExpected(sent, surface.credentialLine)
      assert.deepEqual(requestLinesCompared(received), expected, shown)
      assert.ok(received.every((line) => !secrets.test(line)))
    }
    client.leave()
  })
  await Promise.all(work)
  pair.upstream.forget()
})

test('the scheme is Bearer in any case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const reply = await pair.exchange(
      sized('POST /v1/chat/completions HTTP/1.1', ['Host: h', `authorization: ${scheme} ${key}`], '{}'),
    )
    assert.equal(reply.status, 200, scheme)
  }
})

test('the same key in several places counts once', async () => {
  const lines = places.map((place) => keyLines[place](key))
  for (const surface of surfaces) {
    const reply = await pair.exchange(
      sized(`POST ${surface.readEndpoint} HTTP/1.1`, ['Host: h', ...lines], '{}'),
    )
    assert.equal(reply.status, 200)
    const received = pair.upstream.requests.at(-1)
    assert.deepEqual(requestLinesCompared(received?.headerLines ?? []), [surface.credentialLine])
  }
})

test('no key, somebody else’s and a key that is none are 401, and nothing goes upstream', async () => {
  const count = pair.upstream.requestCount
  const wrong = [
    [],
    ['Authorization: Bearer'],
    ['Authorization: '],
    ['x-api-key: '],
    ['Authorization: Bearer sk-somebody'],
    ['Authorization: Basic c3ZjX2xpdmVfOng='],
    [`Authorization: ${key}`],
    [`x-api-key: ${key.slice(0, -1)}`],
    [`x-api-key: ${key}x`],
    [`Authorization: Bearer ${pair.gateway.adminKey}`],
    [`x_api_key: ${key}`],
    [`Cookie: x-api-key=${key}`],
    ["Authorization: Bearer ' OR '1'='1"],
  ]
  for (const surface of surfaces) {
    for (const lines of wrong) {
      const version = surface.name === 'messages' ? ['anthropic-version: 2023-06-01'] : []
      const target = `${surface.readEndpoint}?api_key=${key}`
      const reply = await pair.exchange(
        sized(`POST ${target} HTTP/1.1`, ['Host: h', ...version, ...lines], '{}'),
      )
      assertOwnError(reply, surface, 401, 'invalid_api_key')
    }
  }
  assert.equal(pair.upstream.requestCount, count)
})

test('two different keys of ours are 400, in whatever places, and nothing goes upstream', async () => {
  const other = (await pair.gateway.createKey('other')).key
  const count = pair.upstream.requestCount
  for (const surface of surfaces) {
    for (const first of places) {
      for (const second of places) {
        for (const stranger of first === second ? [other, 'dummy'] : [other, pair.gateway.adminKey]) {
          for (const [one, two] of [
            [key, stranger],
            [stranger, key],
          ] as const) {
            const lines = ['Host: h', keyLines[first](one), 'X-A: 1', keyLines[second](two)]
            const reply = await pair.exchange(sized(`POST ${surface.readEndpoint} HTTP/1.1`, lines, '{}'))
            assertOwnError(reply, surface, 400, 'bad_request')
          }
        }
      }
    }
  }
  assert.equal(pair.upstream.requestCount, count)
})

test('a revoked key is refused from the moment the revocation has returned', async () => {
  const { id, key: revoked } = await pair.gateway.createKey('short-lived')
  const call = () =>
    pair.exchange(sized('POST /v1/messages HTTP/1.1', ['Host: h', `x-api-key: ${revoked}`], '{"model":"m"}'))
  assert.equal((await call()).status, 200)
  await pair.gateway.revokeKey(id)
  const count = pair.upstream.requestCount
  assertOwnError(await call(), surfaceOf('messages'), 401, 'invalid_api_key')
  assert.equal(pair.upstream.requestCount, count)
})
