import assert from 'node:assert/strict'
import type { ClientOptions } from 'ws'
import type { SocketEntry } from '../../simulator/answer-request.ts'
import type { SimulatorOptions } from '../../simulator/start-simulator.ts'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { dig } from '../simulator/dig.ts'
import { isTerminal, openSocket } from '../simulator/socket-client.ts'
import type { GatewayOptions, TestGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

type Json = Readonly<Record<string, unknown>>
type OpenOptions = ClientOptions & { key?: string; protocols?: string[] }

export async function startTurnsBench(options: GatewayOptions = {}, simulation: SimulatorOptions = {}) {
  const entries: SocketEntry[] = []
  const bench = await startBillingBench(options, { onSocket: (entry) => entries.push(entry), ...simulation })
  const { gateway } = bench
  return {
    ...bench,
    entries,
    manage: gateway.manage,
    async open({ key = gateway.apiKey, ...rest }: OpenOptions = {}) {
      const headers = { ...rest.headers, ...(rest.protocols ? {} : { authorization: `Bearer ${key}` }) }
      const client = await openSocket(gateway, '/v1/responses', { ...rest, headers })
      /** One turn: its events, up to the terminal one. */
      const turn = (event: object) => {
        client.send(event)
        return client.takeUntil(isTerminal)
      }
      return { ...client, id: String(client.headers['x-svc-request-id']), turn }
    },
    turns: (socketId: string, count: number) => settledTurns(gateway, socketId, count),
  }
}

/** A socket's records without its handshake, oldest first, once this many exist and none is open. */
export async function settledTurns(gateway: TestGateway, socketId: string, count: number): Promise<Json[]> {
  const open = new Set<unknown>(['in_flight', 'waiting'])
  let turns: Json[] = []
  await until(`${count} turns of ${socketId}`, async () => {
    const path = `/gateway/v1/requests?socket=${socketId}&limit=100`
    const { data } = (await gateway.manage('GET', path)) as { data: Json[] }
    turns = data.filter(({ id }) => id !== socketId).reverse()
    assert.ok(turns.length <= count, JSON.stringify(turns.map(({ model, state }) => [model, state])))
    return turns.length === count && !turns.some(({ state }) => open.has(state))
  })
  return turns
}

export const create = (more: object = {}) => ({
  type: 'response.create',
  model: 'gpt-4o',
  input: 'Tell me about tollgates.',
  max_output_tokens: 200,
  ...more,
})

export const simulated = (behaviour: string, more: object = {}) =>
  create({ metadata: { 'x-simulator': behaviour }, ...more })

export const refusalOf = (event: unknown) => ({
  type: dig(event, 'type'),
  status: dig(event, 'status'),
  code: dig(event, 'error.code'),
  streamId: dig(event, 'stream_id'),
})
