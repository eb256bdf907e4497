import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { dig, digList, digNumber } from '../simulator/dig.ts'
import { openSocket, type SocketClient } from '../simulator/socket-client.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway.ts'

/** An upstream that answers as a test scripts it, including what the simulator would not send. */
export interface PlayedUpstream {
  readonly gateway: TestGateway
  readonly reached: unknown[]
  readonly closes: { readonly code: number; readonly reason: string }[]
  answer: (message: unknown, say: (event: object) => void) => void
  open(path: string, key: string): Promise<SocketClient>
  /** The costs of a key's turns, oldest first, each with the model served. */
  costs(id: string): Promise<readonly (readonly [string, number])[]>
  spentUsd(id: string): Promise<number>
  heldUsd(id: string): Promise<number>
  close(): Promise<void>
}

/** `greeting` is the first event on a socket. */
export async function playUpstream(greeting: object, options: GatewayOptions = {}): Promise<PlayedUpstream> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const chatUrl = `http://127.0.0.1:${port}`
  const gateway = await startGateway({ chatUrl, chatKey: 'sk-upstream', ...options })
  const ofKey = (id: string) => gateway.manage('GET', `/v1/keys/${id}`)
  const played: PlayedUpstream = {
    gateway,
    reached: [],
    closes: [],
    answer: () => undefined,
    open: (path, key) => openSocket(gateway, path, { headers: { authorization: `Bearer ${key}` } }),
    async costs(id) {
      const calls = digList(await gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`), 'data')
      const settled = calls.filter((call) => dig(call, 'method') === 'WS' && dig(call, 'state') === 'settled')
      return settled
        .map((call) => [String(dig(call, 'model_served')), Number(dig(call, 'cost_usd'))] as const)
        .reverse()
    },
    spentUsd: async (id) => digNumber(await ofKey(id), 'month_spend_usd'),
    heldUsd: async (id) => digNumber(await ofKey(id), 'month_held_usd'),
    async close() {
      await gateway.close()
      for (const socket of server.clients) socket.terminate()
      server.close()
    },
  }
  server.on('connection', (socket: WebSocket) => {
    const say = (event: object) => socket.send(JSON.stringify(event))
    socket.on('close', (code, reason) => played.closes.push({ code, reason: reason.toString() }))
    socket.on('message', (data) => {
      const message: unknown = JSON.parse(data.toString())
      played.reached.push(message)
      played.answer(message, say)
    })
    say(greeting)
  })
  return played
}

/** The first event of a Realtime session whose input is transcribed. */
export const GREETING = {
  type: 'session.created',
  session: {
    type: 'realtime',
    model: 'gpt-realtime',
    audio: { input: { transcription: { model: 'whisper-1' } } },
  },
}

export const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

export const began = (id: string) => ({ type: 'response.created', response: { id, status: 'in_progress' } })

/** The end of a response that costs $0.128. */
export const done = (id: string | null) => ({
  type: 'response.done',
  response: { id, status: 'completed', usage: usageOf(2_000, 1_000) },
})

/** Usage of a `response.done` with this many audio tokens in and out. */
export const usageOf = (heard: number, said: number) => ({
  total_tokens: heard + said,
  input_tokens: heard,
  output_tokens: said,
  input_token_details: { text_tokens: 0, audio_tokens: heard, cached_tokens: 0 },
  output_token_details: { text_tokens: 0, audio_tokens: said },
})
