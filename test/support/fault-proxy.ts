import net from 'node:net'

/** A connection to a server that can be cut, or silenced in one or both directions. */
export interface FaultProxy {
  /** The URL of the server through this proxy. */
  readonly url: string
  /** Holds replies of the server back; requests still arrive. */
  holdReplies(): void
  /** No byte arrives on either side, and neither side notices. */
  mute(): void
  /** Bytes that were held back are sent. */
  heal(): void
  /** Every connection ends at once. New connections are accepted as before. */
  cut(): void
  close(): Promise<void>
}

export async function startFaultProxy(serverUrl: string): Promise<FaultProxy> {
  const url = new URL(serverUrl)
  const pairs = new Set<{ readonly client: net.Socket; readonly server: net.Socket }>()
  let requestsHeld = false
  let repliesHeld = false

  function apply(): void {
    for (const { client, server } of pairs) {
      if (requestsHeld) client.pause()
      else client.resume()
      if (repliesHeld) server.pause()
      else server.resume()
    }
  }

  const listener = net.createServer((client) => {
    const pair = { client, server: net.connect(Number(url.port), url.hostname) }
    pairs.add(pair)
    for (const [from, to] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', (bytes) => to.write(bytes))
      from.on('error', () => {})
      from.on('close', () => {
        to.destroy()
        pairs.delete(pair)
      })
    }
    apply()
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const through = new URL(serverUrl)
  through.port = String((listener.address() as net.AddressInfo).port)

  function hold(requests: boolean, replies: boolean): void {
    requestsHeld = requests
    repliesHeld = replies
    apply()
  }

  function cut(): void {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }

  return {
    url: through.href,
    holdReplies: () => hold(false, true),
    mute: () => hold(true, true),
    heal: () => hold(false, false),
    cut,
    async close() {
      cut()
      await new Promise<void>((resolve) => listener.close(() => resolve()))
    },
  }
}
