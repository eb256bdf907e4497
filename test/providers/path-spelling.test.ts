import assert from 'node:assert/strict'
import fc from 'fast-check'
import { allEndpoints, findEndpoint } from '../../src/providers/find-endpoint.ts'
import { findMisspelled } from '../../src/providers/path-spelling.ts'
import { surfaceNames } from '../support/permitted-differences.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const CHAT = '/v1/chat/completions'

for (const path of words(`
  /v1/ch%61t/completions /v1/chat/completions/ /V1/CHAT/Completions /v1/cha%54/completions/
  /v1/v1/chat/completions /V1/v1/chat/completions /chat/completions /Chat/Completions/
  /v1/chat%2fcompletions /v1/chat%2Fcompletions%2F /%63hat/completions
`)) {
  test(`${path} is not sent, and probably means ${CHAT}`, () => {
    assert.equal(findEndpoint('chat', 'POST', path), null)
    assert.equal(findMisspelled('POST', path)?.meant?.template, CHAT)
  })
}

test('a path that is not plain is not sent, even if it resembles no endpoint', () => {
  for (const path of words(`
    /v1/new%2fone /v1/new; /v1/new;a=b /v1/new%3ba /v1/%2561 /v1/new%00 /v1/new%0a /v1/new%7F /v1/new%
    /v1/new%zz /v1/new@ /v1/new,a /v1/new=a /v1//new /v1/new// // new *
  `))
    for (const method of ['POST', 'DELETE', 'PUT', 'PATCH', 'QUERY', 'PROPFIND'])
      assert.deepEqual(findMisspelled(method, path), { meant: null }, `${method} ${path}`)
})

test('a plain path that resembles no endpoint is sent', () => {
  for (const path of words('/ /v1/brand-new /v2/messages /v1/a.b~c:d_E/%20%C3%A9%2D /v1/new/ /V1/New'))
    for (const method of ['POST', 'DELETE', 'PUT', 'PATCH', 'GET', 'HEAD', 'OPTIONS'])
      assert.equal(findMisspelled(method, path), null, `${method} ${path}`)
})

test('a path of the tables is not sent with a method that they lack', () => {
  for (const [method, path, meant] of [
    ['DELETE', '/v1/messages', 'POST /v1/messages'],
    ['PUT', '/v1/chat/completions', 'GET /v1/chat/completions'],
    ['POST', '/v1/responses/Compact', 'POST /v1/responses/compact'],
    ['POST', '/v1/responses/resp_1', 'GET /v1/responses/{response_id}'],
    ['POST', '/v1/threads/RUNS', 'POST /v1/threads/runs'],
  ] as const) {
    for (const surface of surfaceNames) assert.equal(findEndpoint(surface, method, path), null)
    const found = findMisspelled(method, path)?.meant
    assert.equal(`${found?.method} ${found?.template}`, meant)
  }
})

test('reads are sent in any spelling, except where they issue a credential', () => {
  const poll = '/v1/environments/{environment_id}/work/poll'
  for (const path of words(`
    /v1/environments/e/work/p%6fll /v1/environments/e%2fwork/poll /v1/environments/e/work/poll/
    /V1/environments/e.f/Work/POLL.json /v1/environments/e/work/poll;a /environments/e/work/poll
    /v1/environments/e/work/p%256fll
  `)) {
    for (const method of ['GET', 'HEAD'])
      assert.equal(findMisspelled(method, path)?.meant?.template, poll, path)
    assert.equal(findMisspelled('OPTIONS', path), null)
  }
  for (const path of ['/v1/Models', '/v1/models/', '/v1/x;y', '/v1/chat/completions%2f'])
    for (const method of ['GET', 'HEAD', 'OPTIONS']) assert.equal(findMisspelled(method, path), null, path)
})

test('no spelling of a paid path that decodes to it, or differs from it in case, is sent', () => {
  const paid = allEndpoints().filter(({ billing, method }) => billing !== 'free' && method !== 'WS')
  const change = fc.constantFrom(
    (letter: string) => letter.toUpperCase(),
    (letter: string) => `%${letter.charCodeAt(0).toString(16)}`,
  )
  fc.assert(
    fc.property(fc.constantFrom(...paid), fc.nat(), change, fc.boolean(), (endpoint, at, alter, isLonger) => {
      const path = endpoint.template.replaceAll(/\{\w+\}/g, 'x1')
      const index = 1 + (at % (path.length - 1))
      const other = `${path.slice(0, index)}${alter(path.charAt(index))}${path.slice(index + 1)}${isLonger ? '/' : ''}`
      // On its own surface, the path is the same endpoint, or none that would be sent.
      const found = findEndpoint(endpoint.surface, endpoint.method, other)
      if (found === null) assert.notEqual(findMisspelled(endpoint.method, other), null, other)
      else assert.equal(found.template, endpoint.template, other)
    }),
  )
})
