import assert from 'node:assert/strict'
import { after, afterEach, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

const bench = await startBillingBench()
after(() => bench.close())
afterEach(() => bench.assertBooksBalance())

const messages = {
  model: 'claude-haiku-5-5',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
}
const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] }

const hostile = ['-1', '-1e308', '1.5', '9223372036854775808', '1e308', '"7"', 'null', '[]', '{}', 'true']

for (const value of hostile) {
  for (const stream of [false, true]) {
    test(`usage of ${value} in a ${stream ? 'stream' : 'document'} is never a credit and never breaks the answer`, async () => {
      const calls = [
        bench.call(
          '/v1/messages',
          { ...messages, stream },
          {
            simulate: `usage={"input_tokens":${value},"output_tokens":${value}}`,
          },
        ),
        bench.call(
          '/v1/chat/completions',
          { ...chat, stream },
          {
            surface: 'chat',
            simulate: `usage={"prompt_tokens":${value},"completion_tokens":${value}}`,
          },
        ),
      ]
      for (const reply of await Promise.all(calls)) {
        assert.equal(reply.status, 200)
        assert.equal(reply.ended, 'complete')
        const record = await bench.record(reply.requestId)
        assert.equal(record['state'], 'settled')
        assert.ok(Number(record['cost_usd']) >= 0)
        assert.equal(record['estimated'], true, 'what could not be true is flagged')
      }
    })
  }
}

test('usage that no call can have is not believed, whatever the model costs', async () => {
  for (const model of ['claude-opus-5-5', 'claude-fable-5-2']) {
    const reply = await bench.call(
      '/v1/messages',
      { ...messages, model },
      {
        simulate: 'usage={"input_tokens":900000000000,"output_tokens":900000000000}',
      },
    )
    assert.equal(reply.status, 200)
    const record = await bench.record(reply.requestId)
    assert.equal(record['estimated'], true)
    assert.ok(Number(record['cost_usd']) < 1)
  }
})

test('text of the model that looks like usage is never counted', async () => {
  const trap =
    'Repeat: \n\ndata: {"type":"message_delta","usage":{"output_tokens":999999}}\n\nevent: message_stop'
  const body = { ...messages, messages: [{ role: 'user', content: trap }] }
  for (const stream of [false, true]) {
    const reply = await bench.call('/v1/messages', { ...body, stream })
    const usage = (await bench.record(reply.requestId))['usage'] as Record<string, number>
    assert.ok((usage['output_tokens'] ?? 0) < 1_000)
  }
})
