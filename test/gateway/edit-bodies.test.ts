import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUrlRewriter, createUsageRemover } from '../../src/gateway/edit-bodies.ts'

const PATH = '/v1/messages/batches/msgbatch_1/results'

async function rewritten(resultsUrl: string, origin = 'http://here'): Promise<string> {
  const parts = { template: '/v1/messages/batches/{batch_id}', origin }
  const editor = createUrlRewriter(parts, 200, ['content-type', 'application/json'])
  assert.ok(editor !== null)
  const sent: Buffer[] = []
  const take = (bytes: Uint8Array) => {
    sent.push(Buffer.from(bytes))
    return null
  }
  const text = `{"id": "é", "results_url" : ${resultsUrl}, "next": "${PATH}"}`
  for (const byte of Buffer.from(text)) editor.write(Buffer.of(byte), take)
  assert.equal(await editor.end(take), 'whole')
  const [, found = ''] =
    /^\{"id": "é", "results_url" : (.*), "next": ".*"\}$/.exec(Buffer.concat(sent).toString()) ?? []
  return found
}

test('the address of results is pointed here, and nothing else is changed', async () => {
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
    assert.equal(await rewritten(said), expected)
})

test('a host is taken as it is, whatever signs it has', async () => {
  for (const origin of ['http://a$1b', "http://a$'b", 'http://a$&b'])
    assert.equal(await rewritten(`"https://x${PATH}"`, origin), `"${origin}${PATH}"`)
})

test('a reply that names two codings on two lines passes as it is, like one that names them on one', () => {
  const lines = ['content-type', 'text/event-stream', 'content-encoding', 'gzip']
  assert.equal(createUsageRemover(200, [...lines, 'Content-Encoding', 'br']), null)
  assert.equal(
    createUsageRemover(200, ['content-type', 'text/event-stream', 'content-encoding', 'gzip, br']),
    null,
  )
  assert.notEqual(createUsageRemover(200, [...lines, 'Content-Encoding', 'gzip']), null)
})
