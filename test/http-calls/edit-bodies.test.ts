import assert from 'node:assert/strict'
import { rewriteResultsUrls } from '../../src/http-calls/permitted-changes.ts'
import { test } from '../support/suite.ts'

const PATH = '/v1/messages/batches/msgbatch_1/results'

function rewritten(resultsUrl: string, origin = 'http://here'): string {
  const text = `{"id": "é", "results_url" : ${resultsUrl}, "next": "${PATH}"}`
  const edited = rewriteResultsUrls(Buffer.from(text), origin).toString()
  const [, found = ''] = /^\{"id": "é", "results_url" : (.*), "next": ".*"\}$/.exec(edited) ?? []
  return found
}

test('results_url points to this gateway, and nothing else changes', () => {
  for (const [said, expected] of [
    [`"https://api.anthropic.com${PATH}"`, `"http://here${PATH}"`],
    [
      `"https://api.anthropic.com${PATH}"`.replaceAll('/', '\\/'),
      `"http://here${PATH.replaceAll('/', '\\/')}"`,
    ],
    ['null', 'null'],
    ['5', '5'],
    ['"https://api.anthropic.com/elsewhere"', '"https://api.anthropic.com/elsewhere"'],
    [`"a\\"b${PATH}"`, `"a\\"b${PATH}"`],
  ] as const)
    assert.equal(rewritten(said), expected)
})

test('a host is used unchanged, whatever characters it has', () => {
  for (const origin of ['http://a$1b', "http://a$'b", 'http://a$&b'])
    assert.equal(rewritten(`"https://x${PATH}"`, origin), `"${origin}${PATH}"`)
})
