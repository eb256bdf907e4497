import assert from 'node:assert/strict'
import { mintKey } from '../../src/keys/key-format.ts'
import { asBilled, assertBalanced } from '../billing/bench-of-one.ts'
import { startGatedUpstream } from '../support/gated-upstream.ts'
import { type GatewayOptions, startGateway } from '../support/gateway.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { watchArrivals } from './arrivals.ts'

interface SendOptions {
  readonly surface?: 'messages' | 'chat'
  readonly stream?: boolean
  readonly maxTokens?: number
  readonly body?: string
}

/** By default a call holds at least $0.0005, more than the small caps of these tests. */
const MAX_TOKENS = 1_000

const NOBODYS_KEY = mintKey('svc', 'live').reveal()

export function bodyOf(surface: 'messages' | 'chat', maxTokens = MAX_TOKENS, stream = false): string {
  const messages = [{ role: 'user', content: 'May I pass?' }]
  return JSON.stringify(
    surface === 'messages'
      ? { model: 'claude-haiku-5-5', max_tokens: maxTokens, stream, messages }
      : { model: 'gpt-6-luna', max_completion_tokens: maxTokens, stream, messages },
  )
}

export type GatedBench = Awaited<ReturnType<typeof startGatedBench>>

export async function startGatedBench(options: GatewayOptions = {}) {
  const upstream = await startGatedUpstream({ header: 'x-call', gates: /^(?!at once)/ })
  const gateway = await startGateway({
    messagesUrl: upstream.url,
    chatUrl: `${upstream.url}/v1`,
    ...options,
  })
  const arrivals = watchArrivals(gateway.port)
  /** A free call. Once it is answered, the store has answered all earlier commands. */
  const free = async (key: string) =>
    asBilled(await exchange(gateway, `GET /v1/models HTTP/1.1\r\nHost: gateway\r\nx-api-key: ${key}\r\n\r\n`))
  const close = async () => {
    arrivals.stop()
    await gateway.close()
    await upstream.close()
  }

  return {
    gateway,
    upstream,
    arrivals,

    async send(name: string, key: string, options: SendOptions = {}) {
      const { surface = 'messages', stream = false, maxTokens = MAX_TOKENS, body } = options
      const text = body ?? bodyOf(surface, maxTokens, stream)
      const lines = [
        `POST ${surface === 'messages' ? '/v1/messages' : '/v1/chat/completions'} HTTP/1.1`,
        'Host: gateway',
        `x-call: ${name}`,
        surface === 'messages' ? `x-api-key: ${key}` : `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(text)}`,
      ]
      const connection = await connect(gateway)
      const reply = connection.request(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`)).then(asBilled)
      // A reply that is never awaited belongs to a client that leaves.
      reply.catch(() => undefined)
      reply.finally(() => connection.leave()).catch(() => undefined)
      return {
        reply,
        socket: (await arrivals.arrived(name)).socket,
        leave: () => connection.leave(),
        received: (part: string) => connection.received(part),
      }
    },

    free,

    /** Resolves when the store has answered all earlier commands. Unlike `free`, no waiting call asks again. */
    async storeAnswered() {
      // Admissions are answered in order, and a refused one settles nothing, so no waiting call asks again.
      assert.equal((await free(NOBODYS_KEY)).status, 401)
    },

    /** The record of the key as an admin sees it. */
    record: (id: string) => gateway.manage('GET', `/v1/keys/${id}`),
    assertBalanced: () => assertBalanced(gateway),

    close,
    [Symbol.asyncDispose]: close,
  }
}
