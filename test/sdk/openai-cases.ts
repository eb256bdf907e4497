import assert from 'node:assert/strict'
import { dig, digList, digNumber, digText } from '../simulator/dig.ts'
import { wav } from '../support/audio-bytes.ts'
import { test } from '../support/suite.ts'
import {
  asStream,
  bothWaysOfTests,
  collect,
  errorClasses,
  failureOf,
  testFailures,
  type Way,
} from './both-ways.ts'

type Reply = PromiseLike<unknown> & {
  withResponse(): Promise<{ data: unknown; response: { headers: { get(name: string): unknown } } }>
}

/** Members are methods, so that each SDK's own parameter types fit. */
export interface OpenaiClient {
  chat: { completions: { create(body: object, options?: object): Reply } }
  responses: { create(body: object): PromiseLike<unknown>; retrieve(id: string): PromiseLike<unknown> }
  audio: { transcriptions: { create(body: object): Reply } }
  models: { list(): AsyncIterable<unknown>; retrieve(id: string): PromiseLike<unknown> }
}

export interface ClientOptions {
  readonly baseURL: string
  readonly apiKey: string
  readonly maxRetries: number
  readonly defaultHeaders: Record<string, string>
}

export interface OpenaiSdk<Client extends OpenaiClient> {
  readonly createClient: (options: ClientOptions) => Client
  readonly deleteResponse: (client: Client, id: string) => PromiseLike<unknown>
  readonly toFile: (content: Buffer, name: string) => Promise<unknown>
  readonly AuthenticationError: new (...args: never[]) => Error
  /** The member of an error that has upstream's request id. */
  readonly requestIdField: 'requestID' | 'request_id'
}

const request = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Tell me about tollgates.' }] }
const streamed = { ...request, stream: true }
const response = { model: 'gpt-6.1-sol', input: 'Tell me about tollgates.' }

export function testOpenai<Client extends OpenaiClient>(sdk: OpenaiSdk<Client>): void {
  const ways = bothWaysOfTests()

  const clientOf = (way: Way, behaviour?: string): Client =>
    sdk.createClient({
      baseURL: way.chatUrl,
      apiKey: way.chatKey,
      maxRetries: 0,
      defaultHeaders: behaviour === undefined ? {} : { 'x-simulator': behaviour },
    })
  const chat = (body: object, behaviour?: string) =>
    ways().compare(async (way) => clientOf(way, behaviour).chat.completions.create(body))
  const chunks = (body: object, behaviour?: string) =>
    ways().compare(async (way) =>
      collect(asStream(await clientOf(way, behaviour).chat.completions.create(body))),
    )
  const respond = (body: object) => ways().compare(async (way) => clientOf(way).responses.create(body))
  const responseEvents = (body: object, behaviour?: string) =>
    ways().compare(async (way) => collect(asStream(await clientOf(way, behaviour).responses.create(body))))

  test('a completion is the same object, with the same request id', async () => {
    const completion = await chat({ ...request, n: 2 })
    assert.equal(digList(completion, 'choices').length, 2)
    assert.ok(digNumber(completion, 'usage.completion_tokens') > 10)
    const id = await ways().compare(async (way) =>
      dig(await clientOf(way).chat.completions.create(request), '_request_id'),
    )
    assert.match(String(id), /^req_/)
  })

  test('a stream has the same chunks, with and without usage', async () => {
    const without = await chunks(streamed)
    assert.ok(without.length > 10)
    assert.ok(without.every((chunk) => dig(chunk, 'usage') === undefined))
    const including = await chunks({ ...streamed, stream_options: { include_usage: true } })
    assert.ok(digNumber(including.at(-1), 'usage.total_tokens') > 10)
  })

  test('a stream in odd chunks has the same chunks', async () => {
    for (const behaviour of ['chunks=1;tokens=9', 'chunks=7', 'encode=gzip', 'drip=1;tokens=9']) {
      const seen = await chunks(streamed, behaviour)
      assert.equal(dig(seen.at(-1), 'choices.0.finish_reason'), 'stop')
    }
  })

  test('a response is the same object, and is read and deleted alike', async () => {
    const created = await respond(response)
    assert.equal(dig(created, 'status'), 'completed')
    assert.ok(digText(created, 'output_text').length > 10)
    const id = digText(created, 'id')
    const found = await ways().compare(async (way) => clientOf(way).responses.retrieve(id))
    assert.deepEqual(dig(found, 'output'), dig(created, 'output'))
    const gone = await ways().compare(async (way) => {
      await sdk.deleteResponse(clientOf(way), id)
      return await failureOf(() => clientOf(way).responses.retrieve(id))
    })
    assert.equal(gone.class, 'NotFoundError')
  })

  test('a response has the same events, complete and truncated by its limit', async () => {
    const seen = await responseEvents({ ...response, stream: true, reasoning: { summary: 'auto' } })
    assert.equal(dig(seen[0], 'type'), 'response.created')
    assert.equal(dig(seen.at(-1), 'type'), 'response.completed')
    const cut = await responseEvents({ ...response, stream: true, max_output_tokens: 40 })
    assert.equal(dig(cut.at(-1), 'type'), 'response.incomplete')
  })

  test('models are the same list, page by page and one by one', async () => {
    const models = await ways().compare((way) => collect(clientOf(way).models.list()))
    assert.ok(models.length > 20)
    const one = await ways().compare(async (way) => clientOf(way).models.retrieve('gpt-6-luna'))
    assert.equal(dig(one, 'id'), 'gpt-6-luna')
  })

  test('a form of this SDK is read: a transcription is billed at its model', async () => {
    let costUsd: unknown
    const transcript = await ways().compare(async (way) => {
      const file = await sdk.toFile(wav(3_000), 'a.wav')
      const call = clientOf(way).audio.transcriptions.create({ file, model: 'whisper-1' })
      const { data, response } = await call.withResponse()
      if (way.name === 'through the gateway') costUsd = response.headers.get('x-svc-cost-usd')
      return data
    })
    assert.equal(digNumber(transcript, 'usage.seconds'), 3)
    assert.equal(costUsd, '0.0003')
  })

  testFailures({
    ...{ ways, whole: request, streamed, requestIdField: sdk.requestIdField, errorClasses },
    call: async (way, behaviour, body) => await clientOf(way, behaviour).chat.completions.create(body),
    async callWithWrongKey(url, body) {
      const options = { baseURL: `${url}/v1`, apiKey: 'sk-wrong', maxRetries: 0, defaultHeaders: {} }
      return await sdk.createClient(options).chat.completions.create(body)
    },
    AuthenticationError: sdk.AuthenticationError,
    midStream: { type: 'server_error', beforeError: 4, beforeCut: 6 },
    wrongKey: { code: 'invalid_api_key' },
  })
}
