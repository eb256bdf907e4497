import assert from 'node:assert/strict'
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { assertConserved } from '../store/conformance/conservation.ts'
import { withDeadline } from '../support/deadline.ts'
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway.ts'
import { exchange, type RawReply } from '../support/raw-client.ts'
import { type DatabaseOwner, openDatabaseReader } from '../support/read-database.ts'

export interface BillingBench extends AsyncDisposable {
  readonly gateway: TestGateway
  readonly simulator: Simulator
  /** Makes a call over a raw socket, to see headers and trailers unchanged. */
  call(path: string, body: unknown, options?: CallOptions): Promise<BilledReply>
  /** The record of a call, after it has settled. */
  record(requestId: string, key?: string): Promise<Record<string, unknown>>
  balance(): Promise<Record<string, unknown>>
  credit(amountUsd: number): Promise<void>
  assertBalanced(): Promise<void>
  close(): Promise<void>
}

export interface CallOptions {
  readonly method?: string
  readonly surface?: 'messages' | 'chat'
  readonly simulate?: string
  readonly lines?: readonly string[]
  readonly key?: string
}

export interface BilledReply extends RawReply {
  header(name: string): string | undefined
  trailer(name: string): string | undefined
  readonly requestId: string
}

export async function startBillingBench(
  options: GatewayOptions = {},
  simulation: SimulatorOptions = {},
): Promise<BillingBench> {
  const simulator = await startSimulator({ messagesKey: 'pm', chatKey: 'pc', ...simulation })
  const gateway = await startGateway({
    messagesUrl: simulator.messagesUrl,
    messagesKey: 'pm',
    chatUrl: simulator.chatUrl,
    chatKey: 'pc',
    ...options,
  })

  async function own(method: string, path: string, key = gateway.adminKey, body?: unknown) {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as Record<string, unknown>
    assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  return {
    gateway,
    simulator,

    async call(path, body, { method = 'POST', surface = 'messages', simulate, lines = [], key } = {}) {
      const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
      const credential = key ?? gateway.apiKey
      const head = [
        `${method} ${path} HTTP/1.1`,
        'Host: gateway',
        surface === 'messages' ? `x-api-key: ${credential}` : `Authorization: Bearer ${credential}`,
        ...(surface === 'messages' ? ['anthropic-version: 2023-06-01'] : []),
        ...(simulate === undefined ? [] : [`x-simulator: ${simulate}`]),
        ...lines,
        ...(text === ''
          ? []
          : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
      ]
      const reply = await exchange(gateway, Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`))
      return asBilled(reply)
    },

    record: (requestId, key) => own('GET', `/gateway/v1/requests/${requestId}`, key),
    balance: () => own('GET', '/gateway/v1/balance'),
    credit: (amountUsd) => gateway.prepay(amountUsd),

    assertBalanced: () => assertBalanced(gateway),

    async close() {
      await gateway.close()
      await simulator.close()
    },
    [Symbol.asyncDispose](this: BillingBench) {
      return this.close()
    },
  }
}

export function asBilled(reply: RawReply): BilledReply {
  const find = (from: readonly string[]) => (name: string) => {
    const line = from.find((each) => each.toLowerCase().startsWith(`${name}:`))
    return line?.slice(name.length + 1).trim()
  }
  const header = find(reply.headerLines)
  return { ...reply, header, trailer: find(reply.trailerLines), requestId: header('x-svc-request-id') ?? '' }
}

/** Asserts that this gateway has no open hold and its ledger balances. */
export async function assertBalanced(gateway: DatabaseOwner): Promise<void> {
  const database = openDatabaseReader(gateway)
  try {
    // A client may have its whole response while its call is settling.
    const settled = async () => {
      for (;;) {
        const [open] = await database.read("SELECT count(*) AS n FROM hold WHERE state = 'in_flight'")
        if (open?.['n'] === 0n) return
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await withDeadline(settled(), () => 'a call is left in flight')
    await database.atOneInstant((read) =>
      assertConserved({ rows: (table) => read(`SELECT * FROM ${table}`) }),
    )
  } finally {
    await database.close()
  }
}
