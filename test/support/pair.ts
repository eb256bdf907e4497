import assert from 'node:assert/strict'
import type { Buffer } from 'node:buffer'
import { type Comparison, compare } from './compare.ts'
import { startGateway } from './gateway.ts'
import type { RawReply, ReadOptions } from './raw-client.ts'
import { exchange } from './raw-client.ts'
import { ScriptedUpstream } from './scripted-upstream.ts'
import { providerKeys, type Surface } from './surfaces.ts'
import type { ReceivedRequest, Script } from './upstream-script.ts'
import { message, sized } from './wire-bytes.ts'
import type { Bytes } from './wire-message.ts'

export type RequestParts = {
  method?: string
  target?: string
  version?: string
  /** Header lines before the ones with the key; `lines` follow them. */
  before?: readonly string[]
  lines?: readonly string[]
  body?: Bytes
}

export type Pair = Awaited<ReturnType<typeof startPair>>

/** The bytes do not depend on the store, so in the PostgreSQL run clients use TLS. */
export async function startPair() {
  const upstream = await ScriptedUpstream.start()
  const gateway = await startGateway({
    messagesUrl: upstream.url,
    messagesKey: providerKeys.messages,
    chatUrl: `${upstream.url}/v1`,
    chatKey: providerKeys.chat,
    secure: process.env['TEST_STORE'] === 'postgres' || process.env['TEST_TLS'] === '1',
  })

  const head = (surface: Surface, parts: RequestParts): [string, string[]] => [
    `${parts.method ?? 'POST'} ${parts.target ?? surface.readEndpoint} ${parts.version ?? 'HTTP/1.1'}`,
    [
      'Host: api.example.test',
      ...(parts.before ?? []),
      ...surface.lines(gateway.apiKey),
      ...(parts.lines ?? []),
    ],
  ]

  const ownCall = (surface: Surface, mark: string): Buffer =>
    sized(...head(surface, { lines: [`x-own-answer: ${mark}`] }), surface.jsonBody)

  return {
    upstream,
    gateway,

    /** A request with the client's key, with a length if it has a body and otherwise without framing. */
    request: (surface: Surface, parts: RequestParts = {}) =>
      parts.body === undefined
        ? message(...head(surface, parts))
        : sized(...head(surface, parts), parts.body),

    /** Only the head: the caller sends its own body afterwards. */
    head: (surface: Surface, parts: RequestParts = {}) => message(...head(surface, parts)),

    compare: (
      surface: Surface,
      request: Bytes | readonly Bytes[],
      script: (request: ReceivedRequest) => Script,
    ): Promise<Comparison> =>
      compare({ upstream, gateway, request, script, credentialLine: surface.credentialLine }),

    exchange: (request: Bytes | readonly Bytes[], options: ReadOptions = {}): Promise<RawReply> =>
      exchange(gateway, request, options),

    /** The bytes of a call whose reply is `{"mark":…}`, ahead of all scripts. */
    ownCall,

    /** Makes such a call on a new connection and asserts that it gets its own reply. */
    async assertServes(surface: Surface, mark: string): Promise<void> {
      assertOwnAnswer(await exchange(gateway, ownCall(surface, mark)), mark)
    },

    async close(): Promise<void> {
      await gateway.close()
      await upstream.close()
    },
  }
}

export function assertOwnAnswer(reply: RawReply, mark: string): void {
  assert.equal(reply.status, 200, reply.body.toString('latin1'))
  assert.equal(reply.body.toString(), JSON.stringify({ mark }))
}
