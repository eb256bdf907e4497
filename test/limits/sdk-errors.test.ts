import assert from 'node:assert/strict'
import Anthropic1 from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import Openai7 from 'openai'
import Openai4 from 'openai-4'
import { dig } from '../simulator/dig.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'

interface ClientOptions {
  readonly baseURL: string
  readonly apiKey: string
  readonly maxRetries: number
  readonly defaultHeaders: Record<string, string>
}

interface SdkErrors {
  readonly APIError: new (...args: never[]) => Error
  readonly RateLimitError: new (...args: never[]) => Error
  readonly BadRequestError: new (...args: never[]) => Error
}

interface Sdk extends SdkErrors {
  readonly name: string
  readonly surface: 'messages' | 'chat'
  create(options: ClientOptions, stream: boolean): PromiseLike<unknown>
  /** Reads the gateway's code from the error that this SDK throws. */
  codeOf(error: unknown): unknown
  detailsOf(error: unknown): unknown
}

const prompt = [{ role: 'user' as const, content: 'May I pass?' }]
const message = { model: 'claude-haiku-5-5', max_tokens: 1_000, messages: prompt }
const completion = { model: 'gpt-6-luna', max_completion_tokens: 1_000, messages: prompt }

function openai(name: string, errors: SdkErrors, create: Sdk['create']): Sdk {
  const { APIError, RateLimitError, BadRequestError } = errors
  return {
    ...{ name, surface: 'chat', APIError, RateLimitError, BadRequestError, create },
    codeOf: (error) => dig(error, 'code'),
    detailsOf: (error) => dig(error, 'error.details'),
  }
}

function anthropic(name: string, errors: SdkErrors, create: Sdk['create'], detailsAt: string): Sdk {
  const { APIError, RateLimitError, BadRequestError } = errors
  return {
    ...{ name, surface: 'messages', APIError, RateLimitError, BadRequestError, create },
    codeOf: (error) => dig(error, 'error.error.code'),
    detailsOf: (error) => dig(error, detailsAt),
  }
}

const sdks: readonly Sdk[] = [
  openai('openai 7', Openai7, (options, stream) =>
    new Openai7(options).chat.completions.create({ ...completion, stream }),
  ),
  openai('openai 4', Openai4, (options, stream) =>
    new Openai4(options).chat.completions.create({ ...completion, stream }),
  ),
  anthropic(
    '@anthropic-ai/sdk 1',
    Anthropic1,
    (options, stream) => new Anthropic1(options).messages.create({ ...message, stream }),
    'details',
  ),
  anthropic(
    '@anthropic-ai/sdk 0.137',
    Anthropic0,
    (options, stream) => new Anthropic0(options).messages.create({ ...message, stream }),
    'error.error.details',
  ),
]

const bench = await startGatedBench({ settings: { budgetWaitMs: 0 } })
const poor = await startGatedBench({ settings: { budgetWaitMs: 0 } })
closeAfter(bench, poor)

function clientOptions(
  sdk: Sdk,
  url: string,
  apiKey: string,
  call: string,
  maxRetries: number,
): ClientOptions {
  const baseURL = sdk.surface === 'chat' ? `${url}/v1` : url
  return { baseURL, apiKey, maxRetries, defaultHeaders: { 'x-call': call } }
}

async function errorOf(call: PromiseLike<unknown>): Promise<Error> {
  const error: unknown = await call.then(
    () => assert.fail('the call should have failed'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Error)
  return error
}

for (const sdk of sdks) {
  test(`${sdk.name} throws its own error for 402, with code and figures, after one request`, async () => {
    const { key } = await bench.gateway.createKey(sdk.name, { monthly_budget_usd: 0 })
    for (const stream of [false, true]) {
      const call = `${sdk.name} exceeded ${stream}`
      const options = clientOptions(sdk, bench.gateway.url, key, call, 2)
      const error = await errorOf(sdk.create(options, stream))
      assert.ok(error instanceof sdk.APIError, error.stack)
      assert.equal(dig(error, 'status'), 402)
      assert.equal(dig(error, 'type'), 'billing_error')
      assert.equal(sdk.codeOf(error), 'budget_exceeded')
      assert.equal(dig(sdk.detailsOf(error), 'cap_usd'), 0)
      assert.match(error.message, /monthly budget of this key is 0 USD/)
      assert.equal(bench.arrivals.countOf(call), 1, 'it was retried')
    }
  })

  test(`${sdk.name} does not retry a revoked key or a model that is not allowed`, async () => {
    const { gateway, arrivals } = bench
    const revoked = await gateway.createKey(sdk.name)
    await gateway.revokeKey(revoked.id)
    const narrow = await gateway.createKey(sdk.name, { allowed_models: ['gpt-4o-mini'] })
    for (const [key, status] of [
      [revoked.key, 401],
      [narrow.key, 403],
    ] as const) {
      const call = `${sdk.name} ${status}`
      const error = await errorOf(sdk.create(clientOptions(sdk, gateway.url, key, call, 5), true))
      assert.ok(error instanceof sdk.APIError, error.stack)
      assert.equal(dig(error, 'status'), status)
      const { headers } = error as Error & { headers: Headers | Record<string, string> }
      const said = headers instanceof Headers ? headers.get('x-should-retry') : headers['x-should-retry']
      assert.equal(said, 'false')
      assert.equal(arrivals.countOf(call), 1, 'it was retried')
    }
  })

  test(`${sdk.name} does not retry exhausted credit`, async () => {
    const { gateway, arrivals } = poor
    const balance = await gateway.manage('GET', '/gateway/v1/balance')
    if (balance['enforced'] === false) {
      await gateway.prepay(0.0001)
      const { reply } = await poor.send('at once 200', gateway.apiKey)
      assert.equal((await reply).status, 200)
    }
    const call = `${sdk.name} exhausted`
    const error = await errorOf(sdk.create(clientOptions(sdk, gateway.url, gateway.apiKey, call, 2), false))
    assert.ok(error instanceof (sdk.surface === 'chat' ? sdk.RateLimitError : sdk.BadRequestError))
    assert.equal(sdk.codeOf(error), 'credit_balance_exhausted')
    assert.match(error.message, /credit balance is too low/)
    assert.equal(arrivals.countOf(call), 1, 'it was retried')
  })
}

test('every SDK retries 429 budget_held by itself, and succeeds once the calls in flight have ended', async () => {
  const { gateway, upstream, arrivals } = bench
  const retrying = []
  for (const sdk of sdks) {
    const { key } = await gateway.createKey(sdk.name, { monthly_budget_usd: 0.0001 })
    const first = await bench.send(`${sdk.name} holds`, key)
    const running = await upstream.next()
    const call = `at once 10, ${sdk.name} retried`
    // The SDK waits two seconds, as retry-after says, and the next SDK starts meanwhile.
    const served = Promise.resolve(sdk.create(clientOptions(sdk, gateway.url, key, call, 1), false))
    await arrivals.answered(call)
    assert.ok(!upstream.names.includes(call))
    running.finish(1)
    assert.equal((await first.reply).status, 200)
    retrying.push({ served, call })
  }
  for (const { served, call } of retrying) {
    await served
    assert.equal(arrivals.countOf(call), 2)
  }
  await bench.assertBalanced()
})
