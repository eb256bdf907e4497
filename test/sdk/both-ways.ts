import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
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
