import type { Buffer } from 'node:buffer'
import net from 'node:net'
import tls from 'node:tls'
import { localPair } from './certificates.ts'
import { deadlineMsDefault, nextTurn, withDeadline } from './deadline.ts'
import type { Bytes, Framing } from './wire-message.ts'
import { MessageReader, statusOf, toBuffer } from './wire-message.ts'

export type Address = { host: string; port: number; secure?: boolean }

export type ReplyHead = { statusLine: string; headerLines: string[] }

/** `closed`: the body ended with the connection. `cut`: the connection ended too early, or by a reset. */
export type Ended = 'complete' | 'closed' | 'cut'

export type RawReply = ReplyHead & {
  status: number
  framing: Framing
  body: Buffer
  rawBody: Buffer
  chunks: number[]
  trailerLines: string[]
  interim: ReplyHead[]
  ended: Ended
}

export type ReadOptions = {
  /** The method of the request being answered; decides whether the reply has a body. */
  method?: string
  deadlineMs?: number
}

const unreadBytesMax = 8 * 1024 * 1024

type Waiter = { isOver: () => boolean; resolve: () => void }

/** One plain or TLS connection that sends exact bytes and reads replies without normalising anything. */
export class RawConnection {
  readonly #socket: net.Socket
  readonly #wire: net.Socket
  readonly #unread: Buffer[] = []
  #reader: MessageReader | undefined
  #finished: MessageReader | undefined
  #method = 'GET'
  #interim: ReplyHead[] = []
  #finish: ((ended: Ended) => void) | undefined
  #fail: ((error: Error) => void) | undefined
  #over: 'fin' | 'reset' | undefined
  #waiters: Waiter[] = []
  readonly #closed = Promise.withResolvers<'fin' | 'reset'>()

  /** `wire` is the TCP socket under an encrypted one. */
  constructor(socket: net.Socket, wire = socket) {
    this.#socket = socket
    this.#wire = wire
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('end', () => this.#ended('fin'))
    // A failed write (the peer answered early and closed) must not hide the peer's reply.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') this.#ended('reset')
    })
    socket.on('close', () => this.#ended('reset'))
  }

  closed(deadlineMs = deadlineMsDefault): Promise<'fin' | 'reset'> {
    return withDeadline(this.#closed.promise, () => `still open; ${this.#describe()}`, deadlineMs)
  }

  /** Writes each slice separately, so that it travels as its own segment. */
  async send(bytes: Bytes | readonly Bytes[]): Promise<void> {
    const slices = Array.isArray(bytes) ? (bytes as readonly Bytes[]) : [bytes as Bytes]
    for (const slice of slices) {
      if (!this.#socket.writable) return
      await new Promise<void>((resolve) => this.#socket.write(toBuffer(slice), () => resolve()))
      if (slices.length > 1) await nextTurn()
    }
  }

  /** Reads the next reply with its interim ones, up to its end or that of the connection. */
  read(options: ReadOptions = {}): Promise<RawReply> {
    if (this.#reader !== undefined) throw new Error('a reply is already being read')
    const reader = this.#begin(options.method ?? 'GET')
    const { promise, resolve, reject } = Promise.withResolvers<Ended>()
    this.#finish = resolve
    this.#fail = reject
    const pending = this.#unread.splice(0)
    for (const bytes of pending) this.#take(bytes)
    if (this.#reader !== undefined && this.#over !== undefined) this.#settle(this.#over)
    return withDeadline(promise, () => this.#describe(), options.deadlineMs).then((ended) => {
      const last = this.#finished ?? reader
      const { startLine, ...rest } = last.message()
      return { statusLine: startLine, status: statusOf(startLine), interim: this.#interim, ended, ...rest }
    })
  }

  /** Sends while it reads: an early reply must not wait for the rest of the request. */
  async request(bytes: Bytes | readonly Bytes[], options: ReadOptions = {}): Promise<RawReply> {
    const method = options.method ?? methodOf(bytes)
    const reply = this.read({ ...options, method })
    reply.catch(() => undefined)
    await withDeadline(this.send(bytes), () => `not all was taken; ${this.#describe()}`, options.deadlineMs)
    return reply
  }

  /** Resolves once the current reply has its head and this many bytes of content. */
  reached(bodyBytes: number): Promise<void> {
    return this.#until(() => this.#hasReached(bodyBytes), `body byte ${bodyBytes}`)
  }

  /** Resolves once the content of the current reply contains this text. */
  received(text: string): Promise<void> {
    return this.#until(() => (this.#reader ?? this.#finished)?.message().body.includes(text) === true, text)
  }

  /** Resolves once an interim reply has preceded the current one. */
  interimArrived(): Promise<void> {
    return this.#until(() => this.#interim.length > 0, 'an interim reply')
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  halfClose(): void {
    this.#socket.end()
  }

  leave(): void {
    this.#socket.destroy()
  }

  reset(): void {
    this.#wire.resetAndDestroy()
  }

  #begin(method: string): MessageReader {
    this.#interim = []
    this.#finished = undefined
    this.#method = method
    this.#reader = new MessageReader({ kind: 'response', method })
    return this.#reader
  }

  #take(bytes: Buffer): void {
    let rest = bytes
    while (rest.length > 0) {
      const reader = this.#reader
      if (reader === undefined) {
        this.#unread.push(rest)
        const size = this.#unread.reduce((sum, part) => sum + part.length, 0)
        if (size > unreadBytesMax) this.#socket.destroy(new Error('unread bytes above the limit'))
        return
      }
      try {
        rest = reader.push(rest)
      } catch (error) {
        this.#abandon(error as Error)
        return
      }
      if (reader.done) this.#completed(reader)
      this.#wake()
      if (!reader.done) return
    }
  }

  #completed(reader: MessageReader): void {
    const status = statusOf(reader.startLine)
    if (status < 200 && status !== 101) {
      this.#interim.push({ statusLine: reader.startLine, headerLines: reader.headerLines })
      this.#reader = new MessageReader({ kind: 'response', method: this.#method })
      return
    }
    this.#stop('complete', reader)
  }

  #ended(how: 'fin' | 'reset'): void {
    if (this.#over !== undefined) return
    this.#over = how
    this.#settle(how)
    this.#closed.resolve(how)
  }

  #settle(how: 'fin' | 'reset'): void {
    const reader = this.#reader
    if (reader === undefined) return
    this.#stop(how === 'reset' ? 'cut' : reader.endOfInput(), reader)
  }

  #stop(ended: Ended, reader: MessageReader): void {
    this.#reader = undefined
    this.#finished = reader
    this.#finish?.(ended)
  }

  #abandon(error: Error): void {
    const seen = this.#describe()
    this.#reader = undefined
    this.#fail?.(new Error(`${error.message}; ${seen}`))
    this.#socket.destroy()
  }

  #hasReached(bodyBytes: number): boolean {
    const reader = this.#reader ?? this.#finished
    if (reader === undefined) return false
    const final = reader.hasHead && statusOf(reader.startLine) >= 200
    return final && reader.bodyBytes >= bodyBytes
  }

  #until(isOver: () => boolean, what: string): Promise<void> {
    if (isOver()) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiters.push({ isOver, resolve })
    const arrival = withDeadline(promise, () => `${what} not seen; ${this.#describe()}`)
    // If the exchange itself fails, no test awaits the arrival.
    arrival.catch(() => undefined)
    return arrival
  }

  #wake(): void {
    if (this.#waiters.length === 0) return
    const ready = this.#waiters.filter((waiter) => waiter.isOver())
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter))
    for (const waiter of ready) waiter.resolve()
  }

  #describe(): string {
    const reader = this.#reader ?? this.#finished
    if (reader === undefined) return 'nothing was being read'
    const { startLine, headerLines, body, rawBody } = reader.message()
    const start = body.subarray(0, 300).toString('latin1')
    return (
      `seen so far: ${JSON.stringify(startLine)}, ${JSON.stringify(headerLines)}, interim ${this.#interim.length}, ` +
      `${body.length} body bytes (${rawBody.length} raw) beginning ${JSON.stringify(start)}, end: ${this.#over}`
    )
  }
}

/** TLS sessions by port. Resuming one costs a quarter of a handshake, and there are thousands. */
const sessions = new Map<number, Buffer>()

function secured(wire: net.Socket, { host, port }: Address): tls.TLSSocket {
  const session = sessions.get(port)
  const socket = tls.connect({
    socket: wire,
    host,
    ca: localPair.cert,
    ALPNProtocols: ['http/1.1'],
    ...(session === undefined ? {} : { session }),
  })
  return socket.on('session', (given) => sessions.set(port, given))
}

export async function connect(address: Address): Promise<RawConnection> {
  const { host, port, secure = false } = address
  // Half-open, so that a server closing its side does not stop an upload.
  const wire = net.connect({ host, port, allowHalfOpen: true })
  const socket = secure ? secured(wire, address) : wire
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once(secure ? 'secureConnect' : 'connect', resolve)
  socket.once('error', reject)
  await withDeadline(promise, () => `no connection to ${host}:${port}`)
  socket.off('error', reject)
  return new RawConnection(socket, wire)
}

export async function exchange(
  address: Address,
  bytes: Bytes | readonly Bytes[],
  options: ReadOptions = {},
): Promise<RawReply> {
  const connection = await connect(address)
  try {
    return await connection.request(bytes, options)
  } finally {
    connection.leave()
  }
}

function methodOf(bytes: Bytes | readonly Bytes[]): string {
  const slices = Array.isArray(bytes) ? (bytes as readonly Bytes[]) : [bytes as Bytes]
  const start = slices.slice(0, 16).map((slice) => toBuffer(slice).subarray(0, 16).toString('latin1'))
  return start.join('').split(' ')[0] ?? 'GET'
}
