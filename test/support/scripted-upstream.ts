import type { Buffer } from 'node:buffer'
import net from 'node:net'
import { nextTurn, withDeadline } from './deadline.ts'
import { Inbox } from './inbox.ts'
import type { ReceivedRequest, Script, ScriptChoice, UpstreamConnection } from './upstream-script.ts'
import { isEarly, runScript } from './upstream-script.ts'
import { sized } from './wire-bytes.ts'
import type { Bytes } from './wire-message.ts'
import { headerValues, MessageReader, toBuffer } from './wire-message.ts'

const requestsKept = 1000
const malformedKept = 100

export const emptyReply = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'

/** A TCP server that records exactly what it receives and answers with exactly the bytes of a script. */
export class ScriptedUpstream {
  readonly host = '127.0.0.1'
  /** The latest requests, oldest first. */
  readonly requests: ReceivedRequest[] = []
  /** The reader's complaints about bytes that were not HTTP, one per connection. */
  readonly malformed: string[] = []
  /** Requests whose head has arrived since the start. */
  requestCount = 0
  connectionCount = 0
  receivedBytes = 0
  readonly #server: net.Server
  readonly #open = new Set<UpstreamConnection>()
  readonly #queued: ScriptChoice[] = []
  #arrivals: ((request: ReceivedRequest) => void)[] = []
  #departures: (() => void)[] = []
  #choose: (request: ReceivedRequest) => Script = () => [{ send: emptyReply }]

  private constructor() {
    this.#server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
  }

  static async start(): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream()
    await new Promise<void>((resolve) => upstream.#server.listen(0, upstream.host, resolve))
    return upstream
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port
  }

  /** The settings of a gateway in front of this upstream. */
  get urls() {
    return { messagesUrl: this.url, chatUrl: `${this.url}/v1` }
  }

  get url(): string {
    return `http://${this.host}:${this.port}`
  }

  /** Scripts for the next requests, in order; they take precedence over `answer`. */
  queue(...scripts: ScriptChoice[]): void {
    this.#queued.push(...scripts)
  }

  answer(choose: (request: ReceivedRequest) => Script): void {
    this.#choose = choose
  }

  nextRequest(): Promise<ReceivedRequest> {
    const { promise, resolve } = Promise.withResolvers<ReceivedRequest>()
    this.#arrivals.push(resolve)
    const arrival = withDeadline(promise, () => 'no request arrived upstream')
    // A test that fails earlier never awaits the arrival; its failure is the one to report.
    arrival.catch(() => undefined)
    return arrival
  }

  nextConnectionEnd(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#departures.push(resolve)
    const departure = withDeadline(promise, () => 'no upstream connection ended')
    departure.catch(() => undefined)
    return departure
  }

  /** Sends unsolicited bytes on every open connection. */
  async broadcast(bytes: Bytes): Promise<void> {
    for (const { socket } of this.#open) socket.write(toBuffer(bytes))
    await nextTurn()
  }

  closeConnections(how: 'fin' | 'reset'): void {
    for (const { socket } of this.#open) {
      if (how === 'fin') socket.destroySoon()
      else socket.resetAndDestroy()
    }
  }

  /** Resets the state, except the counters and the open connections. */
  clear(): void {
    this.requests.length = 0
    this.malformed.length = 0
    this.#queued.length = 0
    this.#choose = () => [{ send: emptyReply }]
  }

  async close(): Promise<void> {
    for (const { socket } of this.#open) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #accept(socket: net.Socket): void {
    this.connectionCount++
    const connection = { socket, number: this.connectionCount, ended: Promise.withResolvers<void>() }
    this.#open.add(connection)
    socket.on('error', () => connection.ended.resolve())
    socket.on('end', () => connection.ended.resolve())
    socket.on('close', () => {
      this.#open.delete(connection)
      connection.ended.resolve()
    })
    connection.ended.promise.then(() => {
      for (const notify of this.#departures.splice(0)) notify()
    })
    this.#serve(connection).catch((error: Error) => {
      if (this.malformed.length < malformedKept) this.malformed.push(error.message)
      socket.destroy()
    })
  }

  async #serve(connection: UpstreamConnection): Promise<void> {
    const { socket } = connection
    const inbox = new Inbox(socket, (size) => {
      this.receivedBytes += size
    })
    while (!socket.destroyed && !socket.writableEnded) {
      const reader = new MessageReader({ kind: 'request' })
      if (!(await readHead(reader, inbox))) {
        socket.end()
        return
      }
      const { request, completed, answered } = this.#record(reader, connection)
      const choice = ownAnswer(request) ?? this.#queued.shift() ?? this.#choose
      const script = typeof choice === 'function' ? choice(request) : choice
      const unread = isEarly(script) && script.reading === false
      const receiving = receive(request, reader, inbox, unread).then(completed)
      if (!isEarly(script)) await receiving
      const steps = isEarly(script) ? script.early : script
      if (isEarly(script) || request.complete) await runScript(steps, request, connection)
      answered()
      await receiving
    }
  }

  #record(reader: MessageReader, connection: UpstreamConnection) {
    const completion = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    const [method = '', target = ''] = reader.startLine.split(' ')
    const { startLine, rawBody: _, ...message } = reader.message()
    this.requestCount++
    const request: ReceivedRequest = {
      ...message,
      number: this.requestCount,
      connection: connection.number,
      requestLine: startLine,
      method,
      target,
      complete: false,
      peerClosedEarly: false,
      sentBytes: 0,
      whenComplete: completion.promise,
      whenPeerClosed: connection.ended.promise,
      whenAnswered: answer.promise,
    }
    this.requests.push(request)
    if (this.requests.length > requestsKept) this.requests.shift()
    for (const notify of this.#arrivals.splice(0)) notify(request)
    const completed = () => {
      if (request.complete) completion.resolve()
    }
    return { request, completed, answered: answer.resolve }
  }
}

/** A request can name its reply: a call after a fault gets its own, which no late request may take. */
function ownAnswer(request: ReceivedRequest): Script | undefined {
  const [mark] = headerValues(request.headerLines, 'x-own-answer')
  if (mark === undefined) return undefined
  return [{ send: sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify({ mark })) }]
}

async function readHead(reader: MessageReader, inbox: Inbox): Promise<boolean> {
  while (!reader.hasHead) {
    const bytes = await inbox.take()
    if (bytes === undefined) {
      if (reader.touched) throw new Error(`half a head: ${JSON.stringify(reader.message().startLine)}`)
      return false
    }
    inbox.putBack(reader.push(bytes))
  }
  return true
}

async function receive(
  request: ReceivedRequest,
  reader: MessageReader,
  inbox: Inbox,
  leaveUnread: boolean,
): Promise<void> {
  while (!reader.done && !leaveUnread) {
    const bytes: Buffer | undefined = await inbox.take()
    if (bytes === undefined) break
    inbox.putBack(reader.push(bytes))
  }
  const { body, chunks, trailerLines } = reader.message()
  Object.assign(request, { body, chunks, trailerLines, complete: reader.done })
  if (leaveUnread) inbox.stopReading()
}
