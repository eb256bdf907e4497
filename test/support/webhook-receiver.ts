import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withDeadline } from './deadline.ts'

export interface ReceivedMessage {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The raw bytes, for the signature. */
  readonly body: string
  readonly json: Record<string, unknown>
}

/** The response to a message. `silence` leaves the sender waiting. */
export type Reply = number | 'silence' | ((response: ServerResponse) => void)

/** An HTTP server that receives webhooks on a real socket. */
export class WebhookReceiver {
  readonly messages: ReceivedMessage[] = []
  readonly #server: Server
  #waiting: (() => void)[] = []
  reply: (message: ReceivedMessage) => Reply = () => 204

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const json = JSON.parse(body || '{}') as Record<string, unknown>
        const message = { path: request.url ?? '', headers: request.headers, body, json }
        this.messages.push(message)
        const reply = this.reply(message)
        if (typeof reply === 'number') response.writeHead(reply).end()
        else if (reply !== 'silence') reply(response)
        for (const wake of this.#waiting.splice(0)) wake()
      })
    })
  }

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver()
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`
  }

  get types(): string[] {
    return this.messages.map(({ json }) => String(json['type'] ?? 'text'))
  }

  /** Resolves as soon as the messages received so far are enough. */
  async until(
    isEnough: (messages: readonly ReceivedMessage[]) => boolean,
  ): Promise<readonly ReceivedMessage[]> {
    const enough = async () => {
      while (!isEnough(this.messages)) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    await withDeadline(enough(), () => `only these came: ${this.types.join(', ')}`)
    return this.messages
  }

  async untilTypes(...types: readonly string[]): Promise<readonly ReceivedMessage[]> {
    return await this.until(() => types.every((type) => this.types.includes(type)))
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }
}
