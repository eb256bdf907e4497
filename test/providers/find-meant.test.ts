import assert from 'node:assert/strict'
import { allEndpoints, findEndpoint, findLenientMatch } from '../../src/providers/find-endpoint.ts'
import { spellingsOf } from '../support/spellings.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const CHAT = '/v1/chat/completions'

for (const path of words(`
  /v1/ch%61t/completions /v1/ch%2561t/completions /v1/ch%%36%31t/completions
  /v1/ch%25%32%35%36%31t/completions /v1/chat%2fcompletions /v1/chat%252Fcompletions
  /%2fv1/chat/completions /v1%2Fchat%2Fcompletions%2F /v1/chat/completions/ /v1/chat/completions%2f%2f
  /v1/chat/completions/%20 /v1/chat/completions%20 /v1/chat/%09completions /v1/chat/completions%00
  /v1/chat/completions%00.txt /v1/chat/completions%0a /v1/chat/completions; /v1/chat/completions/;a=b
  /v1;a=b/chat;c/completions;d=e /v1/chat/completions%3Bx /v1/chat/completions%3Fa=b
  /v1/chat/completions%23x /v1/chat/completions.json /v1/chat/completions.JSON /v1/chat/completions.
  /v1/chat/completions.tar.gz /v1/chat.x/completions /V1/CHAT/Completions /v1/cha%54/completions
  /v1/%EF%BD%83hat/completions /v1/chat/completion%C5%BF /v1/v1/chat/completions
  /v1/V1/v1/chat/completions /chat/completions /Chat/Completions/
  /v1/chat/completions/v1/chat/completions /v1/x/%252e%252e/chat/completions /v1/%252e/chat/completions
  /v1/chat%255ccompletions
`)) {
  test(`${path} may mean ${CHAT}`, () => {
    assert.equal(findEndpoint('chat', 'POST', path), null)
    assert.equal(findLenientMatch('POST', path)?.template, CHAT)
  })
}

test('a parameter may have any value except other spellings of literal segments', () => {
  const poll = '/v1/environments/{environment_id}/work/poll'
  for (const path of words(`
    /v1/environments/e/work/p%6fll /v1/environments/e%2fwork/poll /v1/environments/e%2ff/work/poll/
    /v1/environments/a;b/work/poll /v1/environments/a%3Bb/work/poll;c /V1/environments/e.f/Work/POLL.json
    /v1/environments/%ff/work/poll%2f /v1/environments/%/work/poll/ /v1/environments/:e/work/poll/
    /v1/environments/v1/work/poll/ /environments/e/work/poll
  `)) {
    for (const method of ['GET', 'HEAD']) assert.equal(findLenientMatch(method, path)?.template, poll, path)
    assert.equal(findLenientMatch('POST', path), null, path)
  }
  assert.equal(findLenientMatch('POST', '/v1/threads/RUNS/runs/')?.template, '/v1/threads/{thread_id}/runs')
})

test('every spelling of every paid endpoint is recognised, on both surfaces', () => {
  const paid = allEndpoints().filter(({ billing }) => billing !== 'free')
  assert.ok(paid.length > 70)
  for (const { method, template } of paid) {
    for (const path of spellingsOf(template.replaceAll(/\{\w+\}/g, 'x1'))) {
      assert.notEqual(findLenientMatch(method, path), null, `${method} ${path}`)
    }
  }
})
