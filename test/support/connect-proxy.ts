import net from 'node:net'

/** A proxy that opens connections by CONNECT. */
export interface ConnectProxy {
  readonly url: string
  readonly port: number
  /** The head of each CONNECT, in order. */
  readonly heads: readonly string[]
  /** What the proxy does with the next connections: an answer, null to say nothing, or undefined to serve them. */
  answer: string | null | undefined
  /** Every tunnel ends at once, without a word. */
  cut(): void
  close(): Promise<void>
}

/** `to`: where every tunnel ends, whatever host it asks for. */
export async function startConnectProxy(to: number): Promise<ConnectProxy> {
  const heads: string[] = []
  const sockets = new Set<net.Socket>()
  const track = (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    return socket.setNoDelay(true)
  }
  const proxy: ConnectProxy = {
    get url() {
      return `http://127.0.0.1:${proxy.port}`
    },
    get port() {
      return (server.address() as net.AddressInfo).port
    },
    heads,
    answer: undefined,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      proxy.cut()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  const server = net.createServer((client) => {
    let head = ''
    const onData = (bytes: Buffer) => {
      head += bytes.toString('latin1')
      if (!head.endsWith('\r\n\r\n')) return
      client.off('data', onData)
      heads.push(head)
      if (proxy.answer === null) return
      if (proxy.answer !== undefined) return void client.end(proxy.answer)
      const upstream = track(net.connect(to, '127.0.0.1'))
      // In two pieces, because an answer need not come at once.
      client.write('HTTP/1.1 200 Connection est')
      client.write('ablished\r\nvia: 1.1 proxy\r\n\r\n')
      client.pipe(upstream).pipe(client)
      client.on('close', () => upstream.destroy())
      upstream.on('close', () => client.destroy())
    }
    track(client).on('data', onData)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return proxy
}
