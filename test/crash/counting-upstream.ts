import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

const USAGE = { input_tokens: 1_000, output_tokens: 200, service_tier: 'standard' }

/** An upstream that notes the user agent of every request, and answers each with a known usage. */
export class CountingUpstream {
  readonly received: string[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer((req, res) => {
      this.received.push(req.headers['user-agent'] ?? '')
      const chunks: Buffer[] = []
      req.on('data', (chunk: Buffer) => chunks.push(chunk))
      req.on('error', () => {})
      req.on('end', () => {
        const { stream } = JSON.parse(Buffer.concat(chunks).toString()) as { stream?: boolean }
        if (stream === true) this.#stream((text) => res.write(text), res)
        else {
          const message = {
            type: 'message',
            role: 'assistant',
            model: 'claude-haiku-5-5',
            content: [TEXT],
            usage: USAGE,
          }
          res.setHeader('content-type', 'application/json')
          res.end(JSON.stringify({ ...message, stop_reason: 'end_turn' }))
        }
      })
    })
  }

  static async start(): Promise<CountingUpstream> {
    const upstream = new CountingUpstream()
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve))
    return upstream
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #stream(write: (text: string) => void, res: import('node:http').ServerResponse): void {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const message = { type: 'message', role: 'assistant', model: 'claude-haiku-5-5', content: [] }
    const events = [
      { type: 'message_start', message: { ...message, usage: { ...USAGE, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...Array.from({ length: 5 }, () => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: 'word ' },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 200 } },
      { type: 'message_stop' },
    ]
    const next = (): void => {
      const event = events.shift()
      if (event === undefined) res.end()
      else {
        write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        setImmediate(next)
      }
    }
    next()
  }
}

const TEXT = { type: 'text', text: 'word word word word word ' }
