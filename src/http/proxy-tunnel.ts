import { connect, type Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { KEEP_ALIVE, type ProxyAddress } from './egress.ts'
import { type MessageHead, MessageReader, type MessageReceiver } from './message-reader.ts'
import { type PooledCall, UpstreamBroke } from './upstream-call.ts'

/** What happens to a tunnel. Exactly one of the two is called. */
interface TunnelOwner {
  /** `timeoutMs`: what is left of the time to connect. */
  opened(tunnel: ProxyTunnel, socket: Socket, call: PooledCall, timeoutMs: number): void
  gone(tunnel: ProxyTunnel): void
}

/** Asks a proxy for a connection to upstream, for a call that waits for it. Nothing of the call is sent yet. */
export class ProxyTunnel implements MessageReceiver {
  readonly #socket: Socket
  readonly #owner: TunnelOwner
  readonly #reader = new MessageReader('response', this)
  readonly #timer: NodeJS.Timeout
  readonly #startedMs = performance.now()
  #call: PooledCall | null
  #status = 0
  #hasMoreBytes = false

  constructor(
    { host, port, authorization }: ProxyAddress,
    authority: string,
    call: PooledCall,
    owner: TunnelOwner,
  ) {
    this.#owner = owner
    this.#call = call
    this.#reader.hasNoBody = true
    call.assigned(this)
    this.#timer = setTimeout(
      () => this.fail(new UpstreamBroke('PROXY_TIMEOUT', 'the proxy did not open a connection in time')),
      limits.upstreamConnectTimeoutMs,
    )
    const credential = authorization === null ? '' : `proxy-authorization: ${authorization.reveal()}\r\n`
    this.#socket = connect({ host, port, ...KEEP_ALIVE })
      .on('data', this.#onData)
      .on('error', (error) => this.fail(error))
      .on('close', () => this.fail(new UpstreamBroke('PROXY_CLOSED', 'the proxy closed the connection')))
    this.#socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credential}\r\n`, 'latin1')
  }

  head({ status }: MessageHead): void {
    if (status < 200) return
    this.#status = status
    this.#reader.stop()
  }

  data(): boolean {
    return true
  }

  end(): void {}

  afterMessage(): void {
    this.#hasMoreBytes = true
  }

  resume(): void {}

  abandon(): boolean {
    this.#close()
    return true
  }

  fail(error: Error): void {
    const call = this.#call
    this.#close()
    call?.broken(error, false)
  }

  readonly #onData = (chunk: Buffer): void => {
    const error = this.#reader.read(chunk)
    if (error !== null) this.fail(new UpstreamBroke('PROXY_INVALID_ANSWER', 'the proxy does not speak HTTP'))
    else if (this.#status >= 200 && this.#status < 300 && !this.#hasMoreBytes) this.#open()
    else if (this.#status !== 0)
      this.fail(new UpstreamBroke('PROXY_REFUSED', `the proxy answered ${this.#status} to CONNECT`))
  }

  #open(): void {
    const call = this.#call
    const socket = this.#socket
    if (call === null) return
    this.#call = null
    this.#release()
    // The TLS socket reports errors of this one.
    socket.removeAllListeners('close').removeAllListeners('error').off('data', this.#onData)
    socket.on('error', () => {})
    const leftMs = limits.upstreamConnectTimeoutMs - (performance.now() - this.#startedMs)
    this.#owner.opened(this, socket, call, Math.max(0, leftMs))
  }

  #close(): void {
    if (this.#call === null) return
    this.#call = null
    this.#release()
    this.#socket.destroy()
    this.#owner.gone(this)
  }

  #release(): void {
    clearTimeout(this.#timer)
    this.#reader.close()
  }
}
