import assert from 'node:assert/strict'
import type { ClientOptions } from 'ws'
import { type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { dig, digList, digNumber } from '../simulator/dig.ts'
import { openSocket, refusedSocket } from '../simulator/socket-client.ts'
import { type GatewayOptions, startGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

type OpenOptions = ClientOptions & { key?: string; behaviour?: string }
type SocketPair = Awaited<ReturnType<typeof startSocketPair>>

export async function startSocketPair(options: GatewayOptions = {}, simulation: SimulatorOptions = {}) {
  /** Types of the client's messages that reached upstream, and targets of the handshakes. */
  const reached: string[] = []
  const simulator = await startSimulator({
    onSocket: (entry) => {
      if (entry.kind === 'message') reached.push(String(dig(JSON.parse(entry.data.toString()), 'type')))
    },
    onRequest: ({ path }) => reached.push(path),
    ...simulation,
  })
  const gateway = await startGateway({ chatUrl: simulator.chatUrl, chatKey: 'sk-upstream', ...options })
  const calls = async (id: string, query: string) =>
    digList(await gateway.manage('GET', `/v1/keys/${id}/requests?limit=100${query}`), 'data')
  return {
    gateway,
    simulator,
    reached,
    open: (path: string, { key = gateway.apiKey, ...rest }: OpenOptions = {}) =>
      openSocket(gateway, path, { headers: { authorization: `Bearer ${key}` }, ...rest }),
    async refused(path: string, key: string) {
      const { status, body } = await refusedSocket(gateway, path, { authorization: `Bearer ${key}` })
      return { status, code: dig(body, 'error.code') }
    },
    held: async (id: string) => digNumber(await gateway.manage('GET', `/v1/keys/${id}`), 'month_held_usd'),
    /** The ended calls of a key, without handshakes and calls that used nothing, oldest first. */
    async turns(id: string) {
      const ended = (await calls(id, '')).filter(
        (call) => dig(call, 'id') !== dig(call, 'socket_id') && dig(call, 'state') !== 'released',
      )
      return ended.filter((call) => dig(call, 'state') !== 'in_flight').reverse()
    },
    async close() {
      await gateway.close()
      await simulator.close()
    },
  }
}

/** Waits until this many turns of the key have ended; resolves with them. */
export async function endedTurns(pair: SocketPair, id: string, count: number): Promise<readonly unknown[]> {
  let turns: readonly unknown[] = []
  await until(`${count} turns have ended`, async () => {
    turns = await pair.turns(id)
    return turns.length >= count
  })
  assert.equal(turns.length, count)
  return turns
}

export async function nothingHeld(pair: SocketPair, id: string): Promise<void> {
  await until('nothing is held', async () => (await pair.held(id)) === 0)
}

export const say = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
})

/** This many milliseconds of audio, 24,000 samples of 16 bits a second. */
export const append = (ms: number, byte = 1) => ({
  type: 'input_audio_buffer.append',
  audio: Buffer.alloc(ms * 48, byte).toString('base64'),
})

/** Dollars per million tokens of gpt-realtime, from the price list. */
const RATES = { text: 4, audio: 32, cachedText: 0.4, cachedAudio: 0.4, textOut: 16, audioOut: 64 }

export function priceOf(done: unknown): number {
  const read = (path: string) => Number(dig(done, `response.usage.${path}`) ?? 0)
  const [input, output] = ['input_token_details', 'output_token_details']
  const cachedText = read(`${input}.cached_tokens_details.text_tokens`)
  const cachedAudio = read(`${input}.cached_tokens_details.audio_tokens`)
  const perMillion =
    (read(`${input}.text_tokens`) - cachedText) * RATES.text +
    (read(`${input}.audio_tokens`) - cachedAudio) * RATES.audio +
    cachedText * RATES.cachedText +
    cachedAudio * RATES.cachedAudio +
    read(`${output}.text_tokens`) * RATES.textOut +
    read(`${output}.audio_tokens`) * RATES.audioOut
  return Math.round(perMillion * 1_000) / 1e9
}
