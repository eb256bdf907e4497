import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway.ts'
import type { Address } from '../support/raw-client.ts'
import { startPipe } from '../support/tcp-pipe.ts'
import { until } from '../support/until.ts'
import { opcodeOf, splitFrames } from './raw-bench.ts'

/** A gateway with a tap before it and one behind it: the bytes of a socket on one side must leave on the other. */
export interface TappedGateway extends AsyncDisposable {
  readonly gateway: TestGateway
  /** The address that clients connect to. */
  readonly front: Address
  /**
   * Waits until the one socket since the last call is closed from both ends, and asserts that all bytes from its handshake
   * to the close frames are the same before the gateway and behind it, both ways. Resolves with these bytes.
   */
  takeSame(): Promise<{ readonly fromClient: Buffer; readonly fromUpstream: Buffer }>
}

/** The bytes that have passed a place, each way. */
class Tap {
  readonly #chunks = { toUpstream: [] as Buffer[], toClient: [] as Buffer[] }
  readonly toUpstream = (bytes: Buffer) => this.#keep('toUpstream', bytes)
  readonly toClient = (bytes: Buffer) => this.#keep('toClient', bytes)

  /** The bytes from behind the head to the close frame, after which nothing is read. Empty while there is no close frame. */
  seen(way: 'toUpstream' | 'toClient'): Buffer {
    const bytes = Buffer.concat(this.#chunks[way])
    const frames = splitFrames(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))
    return Buffer.concat(frames.slice(0, frames.findIndex((frame) => opcodeOf(frame) === 8) + 1))
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
  const isSame = (way: 'toUpstream' | 'toClient') =>
    before.seen(way).length > 0 && before.seen(way).equals(behind.seen(way))
  return {
    gateway,
    front,
    async takeSame() {
      let seen: { fromClient: Buffer; fromUpstream: Buffer } = {
        fromClient: Buffer.alloc(0),
        fromUpstream: Buffer.alloc(0),
      }
      const isOver = async () => isSame('toUpstream') && isSame('toClient')
      await until('all up to the close frames is the same', isOver).finally(() => {
        seen = { fromClient: before.seen('toUpstream'), fromUpstream: before.seen('toClient') }
        for (const tap of [before, behind]) tap.clear()
      })
      return seen
    },
    async [Symbol.asyncDispose]() {
      await front.close()
      await gateway.close()
      await back.close()
    },
  }
}
