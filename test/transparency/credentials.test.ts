import assert from 'node:assert/strict'
import { compare } from '../support/compare.ts'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { requestLinesCompared, requestLinesExpected } from '../support/permitted-differences.ts'
import { connect } from '../support/raw-client.ts'
import { everyNth } from '../support/scale.ts'
import { emptyReply } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type Surface, surfaceOf, surfaces } from '../support/surfaces.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { headerName, headerValues } from '../support/wire-message.ts'

const pair = await startPair()
closeAfter(pair)

const key = pair.gateway.apiKey
const keyLines = {
  authorization: (value: string) => `Authorization: Bearer ${value}`,
  'x-api-key': (value: string) => `X-API-Key: ${value}`,
  'api-key': (value: string) => `api-key: ${value}`,
} as const
type Place = keyof typeof keyLines
const places = Object.keys(keyLines) as Place[]

/** Other headers that select an account; none may reach upstream. */
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

/** `/v1/messages` exists on one surface; `/v1/unknown` on neither, so the headers decide. */
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
          yield { surface: surfaceOf('messages'), target: '/v1/unknown', lines: versioned }
          const hasApiKey = lines.some((line) => headerName(line) === 'x-api-key')
          yield { surface: surfaceOf(hasApiKey ? 'messages' : 'chat'), target: '/v1/unknown', lines }
        }
      }
    }
  }
}

test('wherever the client’s key is, upstream sees only the operator’s credential', async () => {
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
  pair.upstream.clear()
})

const asked = {
  messages: 'content-type,anthropic-version,x-api-key',
  chat: 'authorization,content-type',
} as const

const allowed = message('HTTP/1.1 204 No Content', [
  'Access-Control-Allow-Origin: https://app.test',
  'access-control-allow-headers: *',
  'Vary: Origin',
])

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, '/v1/models', '/v1/unknown?x=%zz']) {
    test(`${surface.name}: the preflight of ${target} goes upstream without a credential`, async () => {
      const request = message(`OPTIONS ${target} HTTP/1.1`, [
        'Host: api.example.test',
        'Origin: https://app.test',
        'Access-Control-Request-Method: POST',
        `Access-Control-Request-Headers: ${asked[surface.name]}`,
        'User-Agent: Browser/1',
        'Cookie: a=b',
      ])
      const { upstream, gateway } = pair
      const { through } = await compare({ upstream, gateway, request, script: () => [{ send: allowed }] })
      assert.deepEqual(
        through.received.headerLines.filter((line) => /provider-key|a=b/.test(line)),
        [],
      )
      assert.equal(through.received.body.length, 0)
    })
  }

  test(`${surface.name}: a preflight with a body is forwarded without it`, async () => {
    const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
    const version = surface.name === 'messages' ? ['Access-Control-Request-Headers: anthropic-version'] : []
    const arrival = pair.upstream.nextRequest()
    pair.upstream.queue([{ send: allowed }])
    const reply = await pair.exchange(
      sized(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, [...lines, ...version], 'body'),
    )
    assert.equal(reply.status, 204)
    const received = await arrival
    assert.equal(received.body.length, 0)
  })

  test(`${surface.name}: an OPTIONS that is not a preflight needs a key like any call`, async () => {
    const count = pair.upstream.requestCount
    const version = surface.name === 'messages' ? ['anthropic-version: 2023-06-01'] : []
    for (const lines of [[], ['Origin: https://app.test'], ['Access-Control-Request-Method: POST']]) {
      const request = message(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, ['Host: h', ...version, ...lines])
      assertOwnError(await pair.exchange(request), surface, 401, 'invalid_api_key')
    }
    assert.equal(pair.upstream.requestCount, count)
  })

  test(`${surface.name}: a preflight with a wrong key is refused`, async () => {
    const count = pair.upstream.requestCount
    const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
    const request = message(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, [
      ...lines,
      ...surface.lines('svc_live_none'),
    ])
    assertOwnError(await pair.exchange(request), surface, 401, 'invalid_api_key')
    assert.equal(pair.upstream.requestCount, count)
  })
}

test('a preflight of an own path is never forwarded', async () => {
  const count = pair.upstream.requestCount
  const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
  for (const path of ['/v1/keys', '/v1/keys/key_1', '/v1/usage', '/gateway/v1/requests', '/healthz']) {
    const reply = await pair.exchange(message(`OPTIONS ${path} HTTP/1.1`, lines))
    assert.ok(reply.status >= 200, path)
  }
  assert.equal(pair.upstream.requestCount, count)
})
