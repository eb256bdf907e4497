import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'

/**
 * The least that a proxy on this Node with this HTTP client can do: bytes in, bytes out. No keys, no counting, no
 * store. The cost of a gateway is measured from here.
 * Run: node bench/subjects/bare-pipe.ts <upstream URL>
 */

const upstream = new URL(process.argv[2] ?? '')
const pool = new Pool(upstream.origin, { allowH2: false, headersTimeout: 0, bodyTimeout: 0 })

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'host',
])

function passedOn(raw: readonly string[]): string[] {
  const headers: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]]
    if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, value)
  }
  return headers
}

/** A copy of the request's stream: undici destroys a stream that it has sent, and the request's takes the connection along. */
function bodyOf(request: IncomingMessage): Readable | null {
  if (request.method === 'GET' || request.method === 'HEAD') return null
  const body = new Readable({ read: () => request.resume() })
  request.on('data', (chunk) => {
    if (!body.push(chunk)) request.pause()
  })
  request.on('end', () => body.push(null))
  return body
}

class Reply implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #controller: Dispatcher.DispatchController | null = null

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => this.#controller?.resume())
    response.on('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client left'))
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const raw = (controller.rawHeaders ?? []) as readonly Buffer[]
    this.#response.sendDate = false
    this.#response.writeHead(status, passedOn(raw.map((part) => part.toString('latin1'))))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}

const server = createServer({ requestTimeout: 0, keepAliveTimeout: 75_000 }, (request, response) => {
  pool.dispatch(
    {
      method: request.method as Dispatcher.HttpMethod,
      path: request.url ?? '/',
      headers: passedOn(request.rawHeaders),
      body: bodyOf(request),
    },
    new Reply(response),
  )
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  process.stdout.write(`listening ${typeof address === 'object' ? address?.port : 0}\n`)
})
process.stdin.on('end', () => process.exit()).resume()
