import { createServer, type Socket } from 'node:net'
import { createPacer, type PacedStream } from './pacer.ts'
import { RequestReader } from './request-reader.ts'
import { PATHS, replyBody, type StreamText, type Surface, streamText } from './wire-text.ts'

/**
 * The upstream of all measurements: it answers with bytes made beforehand and knows no more of HTTP than it needs for
 * that, so that it takes a fraction of a gateway's CPU time.
 * Run: node bench/upstream.ts '{"replyBytes":2000,"events":100,"eventsPerSecond":20}'
 */

export interface UpstreamPlan {
  /** The size of a reply that is no stream. */
  readonly replyBytes: number
  /** How many timed events a stream has, and how many of them it gets in a second. */
  readonly events: number
  readonly eventsPerSecond: number
}

const plan = JSON.parse(process.argv[2] ?? '{}') as UpstreamPlan

/** A reader that falls further behind is cut off. */
const BACKLOG_BYTES_MAX = 16 * 1024 * 1024

/** Headers like those that providers send. */
const HEADERS = [
  'date: Sun, 01 Nov 2026 12:00:00 GMT',
  'request-id: req_011CSHoEeqs5C35K2UUqR7Fy',
  'x-request-id: req_011CSHoEeqs5C35K2UUqR7Fy',
  'ratelimit-requests-limit: 4000',
  'ratelimit-requests-remaining: 3999',
  'ratelimit-tokens-limit: 400000',
  'ratelimit-tokens-remaining: 399000',
  'strict-transport-security: max-age=31536000; includeSubDomains; preload',
  'server: bench',
].join('\r\n')

const wholeReply = (surface: Surface): Buffer => {
  const body = Buffer.from(replyBody(surface, plan.replyBytes))
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${HEADERS}\r\ncontent-length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  `${HEADERS}\r\ntransfer-encoding: chunked\r\n\r\n`
const NOT_FOUND = Buffer.from('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')

const wholeReplies = { messages: wholeReply('messages'), chat: wholeReply('chat') }
const streams = {
  messages: streamText('messages', false),
  chat: streamText('chat', false),
  chatWithUsage: streamText('chat', true),
}
const pacer = createPacer(plan.eventsPerSecond)

const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

class SentStream implements PacedStream {
  readonly #socket: Socket
  readonly #text: StreamText
  #left = plan.events

  constructor(socket: Socket, text: StreamText) {
    this.#socket = socket
    this.#text = text
    socket.write(STREAM_HEAD + chunkOf(text.opening), 'latin1')
  }

  send(nowNs: number): boolean {
    const socket = this.#socket
    if (socket.destroyed) return false
    if (socket.writableLength > BACKLOG_BYTES_MAX) {
      socket.destroy()
      return false
    }
    const { before, after, closing } = this.#text
    const event = chunkOf(before + nowNs + after)
    this.#left -= 1
    socket.write(this.#left > 0 ? event : `${event}${chunkOf(closing)}0\r\n\r\n`, 'latin1')
    return this.#left > 0
  }
}

function answer(socket: Socket, path: string, body: Buffer): void {
  const surface = path.startsWith(PATHS.chat) ? 'chat' : path.startsWith(PATHS.messages) ? 'messages' : null
  if (surface === null) {
    socket.write(NOT_FOUND)
  } else if (!body.includes('"stream":true')) {
    socket.write(wholeReplies[surface])
  } else {
    const withUsage = surface === 'chat' && body.includes('"include_usage":true')
    pacer.add(new SentStream(socket, withUsage ? streams.chatWithUsage : streams[surface]))
  }
}

const server = createServer({ noDelay: true }, (socket) => {
  const reader = new RequestReader((path, body) => answer(socket, path, body))
  socket.on('data', (chunk) => reader.read(chunk))
  socket.on('error', () => socket.destroy())
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : 0}\n`)
})
// The process that started the upstream is gone.
process.stdin.on('end', () => process.exit()).resume()
