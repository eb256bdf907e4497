import assert from 'node:assert/strict'
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway.ts'
import type { Address } from '../support/raw-client.ts'
import { startPipe } from '../support/tcp-pipe.ts'
import { until } from '../support/until.ts'

/** A gateway whose clients and whose upstream are listened to: what a socket brings on one side leaves it on the other. */
export interface TappedGateway extends AsyncDisposable {
  readonly gateway: TestGateway
  /** Where clients connect. */
  readonly front: Address
  /**
   * The one socket since this was asked last: all bytes behind its handshake are the same before the gateway and behind it, both ways.
   * Returns them.
   */
  takeSame(): Promise<{ readonly fromClient: Buffer; readonly fromUpstream: Buffer }>
}

/** What has passed a place, each way. */
class Tap {
  readonly #chunks = { toUpstream: [] as Buffer[], toClient: [] as Buffer[] }
  readonly toUpstream = (bytes: Buffer) => this.#keep('toUpstream', bytes)
  readonly toClient = (bytes: Buffer) => this.#keep('toClient', bytes)

  /** Behind the head. */
  seen(way: 'toUpstream' | 'toClient'): Buffer {
    const bytes = Buffer.concat(this.#chunks[way])
    return bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
  }

  clear(): void {
    for (const chunks of Object.values(this.#chunks)) chunks.length = 0
  }

  #keep(way: 'toUpstream' | 'toClient', bytes: Buffer): Buffer {
    this.#chunks[way].push(bytes)
    return bytes
  }
}

export async function startTappedGateway(
  upstream: Address,
  options: GatewayOptions = {},
): Promise<TappedGateway> {
  const [before, behind] = [new Tap(), new Tap()]
  const back = await startPipe(upstream, behind)
  const chatUrl = `http://${back.host}:${back.port}/v1`
  const gateway = await startGateway({ chatUrl, chatKey: 'sk-upstream', ...options })
  const front = await startPipe(gateway, before)
  const isSame = (way: 'toUpstream' | 'toClient') => before.seen(way).equals(behind.seen(way))
  return {
    gateway,
    front,
    async takeSame() {
      await until(
        'the same bytes are on both sides',
        async () => isSame('toUpstream') && isSame('toClient'),
        {
          withinMs: 20_000,
        },
      )
      const seen = { fromClient: before.seen('toUpstream'), fromUpstream: before.seen('toClient') }
      assert.ok(seen.fromClient.length > 0 && seen.fromUpstream.length > 0)
      for (const tap of [before, behind]) tap.clear()
      return seen
    },
    async [Symbol.asyncDispose]() {
      await front.close()
      await gateway.close()
      await back.close()
    },
  }
}
