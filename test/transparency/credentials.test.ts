import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { requestLinesCompared, requestLinesExpected } from '../support/permitted-differences.ts'
import { connect } from '../support/raw-client.ts'
import { everyNth } from '../support/scale.ts'
import { emptyReply } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { type Surface, surfaceOf } from '../support/surfaces.ts'
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
