import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { untilCounted } from '../support/simulator-counts.ts'
import { after, before, test } from '../support/suite.ts'
import { words } from '../support/words.ts'

export interface Way {
  readonly name: 'directly' | 'through the gateway'
  readonly messagesUrl: string
  readonly messagesKey: string
  readonly chatUrl: string
  readonly chatKey: string
  readonly simulator: Simulator
}

const messagesKey = 'sk-ant-provider'
const chatKey = 'sk-provider'

export type BothWays = Awaited<ReturnType<typeof startBothWays>>

/** Each route has its own simulator, so that they share no state. Equal requests get equal replies. */
export async function startBothWays() {
  const start = () => startSimulator({ messagesKey, chatKey, deterministic: true })
  const [direct, behind] = await Promise.all([start(), start()])
  const { messagesUrl, chatUrl } = behind
  const gateway = await startGateway({ messagesUrl, messagesKey, chatUrl, chatKey })
  const { url, apiKey } = gateway
  const ways: readonly [Way, Way] = [
    {
      name: 'directly',
      messagesUrl: direct.messagesUrl,
      messagesKey,
      chatUrl: direct.chatUrl,
      chatKey,
      simulator: direct,
    },
    {
      name: 'through the gateway',
      messagesUrl: url,
      messagesKey: apiKey,
      chatUrl: `${url}/v1`,
      chatKey: apiKey,
      simulator: behind,
    },
  ]
  return {
    gatewayUrl: url,
    /** Resolves with the direct result, which the test also checks, since two failures would be equal. */
    async compare<Result>(act: (way: Way) => Promise<Result>): Promise<Result> {
      const [directly, through] = [await act(ways[0]), await act(ways[1])]
      assert.deepEqual(through, directly)
      return directly
    },
    async close() {
      await gateway.close()
      await Promise.all([direct.close(), behind.close()])
    },
  }
}

/** The error of a failed call. Members that an SDK lacks stay undefined. */
export interface Failure {
  readonly class: string
  readonly name: string
  readonly message: string
  readonly fields: Record<string, unknown>
  readonly headers: [string, string][]
}

const failureFields = words(`
  status code type param error requestID request_id workspaceID apiMessage errorCode details statusCode
  responseBody isRetryable
`)

/** Runs a call that must fail; resolves with all members of its error. */
export async function failureOf(call: () => PromiseLike<unknown>): Promise<Failure> {
  const error: unknown = await Promise.resolve()
    .then(call)
    .then(
      () => assert.fail('the call should have failed'),
      (reason: unknown) => reason,
    )
  assert.ok(error instanceof Error)
  const members = new Map(Object.entries(error))
  return {
    class: error.constructor.name,
    name: error.name,
    message: error.message,
    fields: Object.fromEntries(failureFields.map((name) => [name, members.get(name)])),
    headers: upstreamHeaders(members.get('headers') ?? members.get('responseHeaders')),
  }
}

/** Upstream's headers, without hop-by-hop ones and those that the gateway adds. */
export function upstreamHeaders(headers: unknown): [string, string][] {
  const entries: [string, unknown][] =
    headers instanceof Headers ? [...headers.entries()] : Object.entries(Object(headers))
  return entries
    .filter(([name]) => !/^(x-svc-.*|connection|keep-alive|transfer-encoding|trailer)$/i.test(name))
    .map(([name, value]) => [name, String(value)])
}

export async function collect<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const collected: Event[] = []
  for await (const event of events) collected.push(event)
  return collected
}

/** The reply of a streaming call, which must be iterable. */
export function asStream(reply: unknown): AsyncIterable<unknown> {
  assert.ok(typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply)
  return reply as AsyncIterable<unknown>
}

/** Reads a stream that must fail; resolves with the events before the failure. */
export async function watchUntilFailure(
  open: () => PromiseLike<unknown>,
): Promise<{ seen: unknown[]; failure: Failure }> {
  const seen: unknown[] = []
  const failure = await failureOf(async () => {
    for await (const event of asStream(await open())) seen.push(event)
  })
  return { seen, failure }
}

/** The class that most SDKs throw for a status. */
export const errorClasses = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  409: 'ConflictError',
  413: 'APIError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  503: 'InternalServerError',
  529: 'InternalServerError',
} as const

/** The two routes of the tests of a file. */
export function bothWaysOfTests(): () => BothWays {
  let ways: BothWays
  before(async () => {
    ways = await startBothWays()
  })
  after(() => ways.close())
  return () => ways
}

interface FailingCalls {
  readonly ways: () => BothWays
  readonly whole: object
  readonly streamed: object
  call(way: Way, behaviour: string, body: object): PromiseLike<unknown>
  callWithWrongKey(gatewayUrl: string, body: object): PromiseLike<unknown>
  readonly errorClasses: Readonly<Record<string, string>>
  readonly AuthenticationError: new (...args: never[]) => Error
  /** The member of an error that has upstream's request id. */
  readonly requestIdField: string
  /** The type of the third event of a stream that fails, and how much precedes that and a cut after six events. */
  readonly midStream: { readonly type: string; readonly beforeError: number; readonly beforeCut: number }
  readonly wrongKey: Readonly<Record<string, unknown>>
}

export function testFailures(sdk: FailingCalls): void {
  const { ways, whole, streamed, call, requestIdField, midStream } = sdk

  for (const [status, errorClass] of Object.entries(sdk.errorClasses)) {
    test(`an upstream ${status} throws ${errorClass} with the same fields and headers`, async () => {
      for (const body of [whole, streamed]) {
        const failure = await ways().compare((way) => failureOf(() => call(way, `status=${status}`, body)))
        assert.equal(failure.class, errorClass)
        assert.equal(failure.fields['status'], Number(status))
        assert.match(String(failure.fields[requestIdField]), /^req_/)
      }
    })
  }

  test('an error mid-stream is thrown after the same events', async () => {
    const { seen, failure } = await ways().compare((way) =>
      watchUntilFailure(() => call(way, 'error-event=3', streamed)),
    )
    assert.equal(seen.length, midStream.beforeError)
    assert.equal(failure.fields['type'], midStream.type)
  })

  test('a broken stream throws, and never ends normally', async () => {
    const { seen } = await ways().compare((way) =>
      watchUntilFailure(() => call(way, 'cut=event:6', streamed)),
    )
    assert.equal(seen.length, midStream.beforeCut)
  })

  test('a stream that the client leaves is cancelled upstream', async () => {
    const seen = await ways().compare(async (way) => {
      const { aborted } = way.simulator
      const first: unknown[] = []
      for await (const event of asStream(await call(way, 'drip=20;tokens=2000', streamed))) {
        if (first.push(event) === 4) break
      }
      await untilCounted(way.simulator, (counts) => counts.aborted > aborted)
      return first
    })
    assert.equal(seen.length, 4)
  })

  test("a wrong key throws the SDK's AuthenticationError", async () => {
    for (const body of [whole, streamed]) {
      const call = async () => await sdk.callWithWrongKey(ways().gatewayUrl, body)
      await assert.rejects(call, sdk.AuthenticationError)
      const { fields } = await failureOf(call)
      assert.partialDeepStrictEqual(fields, { status: 401, ...sdk.wrongKey })
      assert.equal(typeof fields[requestIdField], 'string')
    }
  })
}
