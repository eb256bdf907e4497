import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { APICallError, generateText, type LanguageModel, streamText } from 'ai'
import { dig, digNumber } from '../simulator/dig.ts'
import { after, before, test } from '../support/suite.ts'
import { type BothWays, collect, failureOf, startBothWays, upstreamHeaders, type Way } from './both-ways.ts'

let ways: BothWays
before(async () => {
  ways = await startBothWays()
})
after(() => ways.close())

const headersOf = (behaviour: string | undefined): Record<string, string> =>
  behaviour === undefined ? {} : { 'x-simulator': behaviour }
const openaiOf = (way: Way, behaviour?: string) =>
  createOpenAI({ baseURL: way.chatUrl, apiKey: way.chatKey, headers: headersOf(behaviour) })
const anthropicOf = (way: Way, behaviour?: string) =>
  createAnthropic({
    baseURL: `${way.messagesUrl}/v1`,
    apiKey: way.messagesKey,
    headers: headersOf(behaviour),
  })

type CreateModel = (way: Way, behaviour?: string) => LanguageModel

const models: Readonly<Record<string, CreateModel>> = {
  'OpenAI Responses': (way, behaviour) => openaiOf(way, behaviour)('gpt-6.1-sol'),
  'OpenAI Chat': (way, behaviour) => openaiOf(way, behaviour).chat('gpt-4o'),
  'Anthropic Messages': (way, behaviour) => anthropicOf(way, behaviour)('claude-sonnet-5-5'),
}

const prompt = 'Tell me about tollgates.'

/**
 * A result as plain JSON, without the members that the SDK makes by itself: its own clock and stopwatch, the
 * address it was given, and the headers that are not upstream's.
 */
function plain(value: unknown): unknown {
  const made = new Set(['timestamp', 'url', 'performance'])
  const text = JSON.stringify(value, (key, member: unknown) => {
    if (made.has(key)) return undefined
    return key === 'headers' ? upstreamHeaders(member) : member
  })
  return JSON.parse(text)
}

for (const [name, modelOf] of Object.entries(models)) {
  test(`${name}: a text is the same, with usage, metadata and headers`, async () => {
    const result = await ways.compare(async (way) => {
      const { text, finishReason, usage, response, providerMetadata, warnings, content } = await generateText(
        { model: modelOf(way), prompt, maxRetries: 0 },
      )
      return plain({ text, finishReason, usage, response, providerMetadata, warnings, content })
    })
    assert.equal(dig(result, 'finishReason'), 'stop')
    assert.ok(digNumber(result, 'usage.outputTokens') > 10)
    assert.ok(String(dig(result, 'text')).includes(prompt))
  })

  test(`${name}: a stream has the same parts`, async () => {
    const parts = await ways.compare(async (way) =>
      plain(await collect(streamText({ model: modelOf(way), prompt, maxRetries: 0 }).fullStream)),
    )
    assert.ok(Array.isArray(parts) && parts.length > 20)
    assert.equal(dig(parts.at(-1), 'finishReason'), 'stop')
  })

  for (const status of [400, 401, 404, 429, 500, 529]) {
    test(`${name}: an upstream ${status} raises the same APICallError`, async () => {
      const failure = await ways.compare((way) =>
        failureOf(() => generateText({ model: modelOf(way, `status=${status}`), prompt, maxRetries: 0 })),
      )
      assert.equal(failure.name, 'AI_APICallError')
      assert.equal(failure.fields['statusCode'], status)
      assert.equal(failure.fields['isRetryable'], status === 429 || status >= 500)
    })
  }

  test(`${name}: an error in the middle of a stream is the same part`, async () => {
    const parts = await ways.compare(async (way) => {
      const stream = streamText({
        model: modelOf(way, 'error-event=3'),
        prompt,
        maxRetries: 0,
        onError: () => undefined,
      })
      return plain(await collect(stream.fullStream))
    })
    assert.ok(Array.isArray(parts) && parts.some((part) => dig(part, 'type') === 'error'))
  })
}

test('a wrong key raises an APICallError with status 401', async () => {
  const openai = createOpenAI({ baseURL: `${ways.gatewayUrl}/v1`, apiKey: 'sk-wrong' })
  const anthropic = createAnthropic({ baseURL: `${ways.gatewayUrl}/v1`, apiKey: 'sk-ant-wrong' })
  for (const model of [openai('gpt-6.1-sol'), openai.chat('gpt-4o'), anthropic('claude-sonnet-5-5')]) {
    await assert.rejects(
      () => generateText({ model, prompt, maxRetries: 0 }),
      (error) => APICallError.isInstance(error) && error.statusCode === 401 && !error.isRetryable,
    )
  }
})
