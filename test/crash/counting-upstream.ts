import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerOf, NANOS_PER_TOKEN } from '../support/upstream-answer.ts'

const TOKENS = 200
export const CALL_NANOS = NANOS_PER_TOKEN * BigInt(TOKENS)

/** Records the user agent of every request, and answers with a known usage, event by event. */
export class CountingUpstream {
  readonly received: string[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer((req, res) => {
      const name = req.headers['user-agent'] ?? ''
      this.received.push(name)
      const chunks: Buffer[] = []
      req.on('data', (chunk: Buffer) => chunks.push(chunk))
      req.on('error', () => {})
      req.on('end', () => {
        const { stream = false } = JSON.parse(Buffer.concat(chunks).toString()) as { stream?: boolean }
        const { type, pieces } = answerOf('messages', stream, name, TOKENS)
        res.writeHead(200, { 'content-type': type })
        const next = (index: number): void => {
          if (index === pieces.length) return void res.end()
          res.write(pieces[index])
          setImmediate(next, index + 1)
        }
        next(0)
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
}
