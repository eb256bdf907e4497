import assert from 'node:assert/strict'
import { startPair } from '../support/pair.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { sized } from '../support/wire-bytes.ts'

const pair = await startPair()
closeAfter(pair)

const queries = [
  '?',
  '??',
  '?a',
  '?a=',
  '?=',
  '?&&',
  '?beta=true',
  '?b=2&a=1&b=3',
  '?a=b+c%20d',
  '?a=%zz&b=%',
  '?a=%2F..%2f..%5c&b=/../..//x',
  '?a=%e2%82%ac&A=%E2%82%AC',
  '?a=1?b=2',
  '?a[]=1&b[c]=2&d;e',
  "?a=b:c@d!$'()*,~",
  '?a="<x>{y}|^`\\',
  '?q=%00%0d%0aX:y',
  '?next=http://other.test/v1/keys',
  `?long=${'x'.repeat(6_000)}`,
]

const plainPaths = ['/v1/unknown', '/v1/unknown/deeper/st%20ll', '/v1/keysmith', '/v1/usages', '/v1/', '/v1']

const readPaths = [
  ...plainPaths,
  '/v1/models/ft:gpt-5:org::id-1',
  '/v1/models/a%20b',
  '/v1/models/a%2Fb%2fc',
  '/v1/models/%E2%82%AC%zz%',
  "/v1/models/~!$&'()*+,;=:@.",
  '/v1/models/...',
  '/v1/models/a..b/.c',
  '/v1/models/',
  '/v1/models;x',
  '/v1/Models',
]

for (const surface of surfaces) {
  test(`${surface.name}: every query arrives unchanged`, async () => {
    for (const query of queries) {
      const target = `/v1/models${query}`
      const request = pair.request(surface, { method: 'GET', target })
      const { through } = await pair.compare(surface, request, () => [
        { send: sized('HTTP/1.1 200 OK', [], '1') },
      ])
      assert.equal(through.received.requestLine, `GET ${target} HTTP/1.1`)
    }
  })

  test(`${surface.name}: a query on an endpoint whose body is read`, async () => {
    const request = pair.request(surface, {
      target: `${surface.readEndpoint}?beta=true`,
      body: surface.jsonBody,
    })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', [], '1') }])
  })

  test(`${surface.name}: an unknown path arrives unchanged`, async () => {
    const all = [
      ...readPaths.map((target) => ({ method: 'GET', target })),
      ...plainPaths.map((target) => ({ method: 'POST', target, body: '{"a":1}' })),
    ]
    for (const { method, target, ...body } of all) {
      // The version header keeps a path of neither surface on this one.
      const request = pair.request(surface, { method, target, ...body })
      const { through } = await pair.compare(surface, request, () => [
        { send: sized('HTTP/1.1 404 Not Found', ['X-Own: no'], '{"error":{}}') },
      ])
      assert.equal(through.received.requestLine, `${method} ${target} HTTP/1.1`)
    }
  })
}

test('messages: a path outside /v1 arrives unchanged', async () => {
  const [messages] = surfaces
  assert.ok(messages)
  for (const target of ['/', '/api/hello', '/V1/messages', '/gatewayx', '/dashboards/x%2fy?a']) {
    const request = pair.request(messages, { method: 'GET', target })
    await pair.compare(messages, request, () => [{ send: sized('HTTP/1.1 404 Not Found', [], 'no') }])
  }
})

test("a target in absolute form for the request's host arrives as its path", async () => {
  for (const surface of surfaces) {
    const target = 'http://api.example.test/v1/models?a=%zz'
    const request = pair.request(surface, { method: 'GET', target })
    const direct = pair.request(surface, { method: 'GET', target: '/v1/models?a=%zz' })
    const { through } = await pair.compare(surface, direct, () => [
      { send: sized('HTTP/1.1 200 OK', [], '1') },
    ])
    const arrival = pair.upstream.nextRequest()
    await pair.exchange(request)
    assert.equal((await arrival).requestLine, through.received.requestLine)
  }
})
