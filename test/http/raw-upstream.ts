import { Buffer } from 'node:buffer'
import net from 'node:net'
import type { TestContext } from 'node:test'
import type { MessageHead } from '../../src/http/message-reader.ts'
import type { CallEnd, ReplyReceiver, UpstreamRequest } from '../../src/http/upstream-call.ts'
import { callUpstream, openUpstream } from '../../src/http/upstream-connection.ts'
import { withDeadline } from '../support/deadline.ts'
import { createLogLines } from '../support/log-lines.ts'

export interface Accepted {
  readonly socket: net.Socket
  received(): string
  saw(text: string): Promise<void>
  readonly closed: Promise<void>
}

const REQUEST: UpstreamRequest = {
  method: 'POST',
  target: '/v1/x',
  host: 'up',
  headers: [],
  lengthBytes: null,
  body: null,
}

/** An upstream without HTTP: the test sends its bytes. */
export async function startRawUpstream(t: TestContext, serve: (accepted: Accepted) => void) {
  const connections: Accepted[] = []
  const server = net.createServer({ noDelay: true }, (socket) => {
    const accepted = watch(socket)
    connections.push(accepted)
    serve(accepted)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const { log, lines: logged } = createLogLines()
  const { pool } = openUpstream({ url: new URL(`http://127.0.0.1:${port}`), key: null }, log)
  t.after(() => {
    pool.destroy()
    for (const { socket } of connections) socket.destroy()
    server.close()
  })
  const send = (parts: Partial<UpstreamRequest>, receiver: Partial<ReplyReceiver> = {}) => {
    const request = { ...REQUEST, ...parts }
    const reply = new TakenReply(receiver)
    const call = callUpstream(pool, request, reply)
    const ended = withDeadline(call.ended, () => `the call has not ended; ${JSON.stringify(reply.lines)}`)
    return { call, ended, reply }
  }
  return { pool, connections, logged, send }
}

function watch(socket: net.Socket): Accepted {
  let text = ''
  const waiting = new Set<() => void>()
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    for (const look of waiting) look()
  })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const saw = (wanted: string) =>
    withDeadline(
      new Promise<void>((resolve) => {
        const look = () => {
          if (!text.includes(wanted)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
      () => `${JSON.stringify(wanted)} has not come, only ${JSON.stringify(text)}`,
    )
  return { socket, received: () => text, saw, closed }
}

export class TakenReply implements ReplyReceiver {
  readonly lines: string[] = []
  readonly #receiver: Partial<ReplyReceiver>
  bytes = Buffer.alloc(0)

  constructor(receiver: Partial<ReplyReceiver> = {}) {
    this.#receiver = receiver
  }

  head(head: MessageHead): void {
    const { status, reason, headers } = head
    this.lines.push(`${status} ${status < 200 ? '' : `${reason} `}${headers.join('|')}`)
    this.#receiver.head?.(head)
  }

  data(chunk: Buffer): boolean {
    this.bytes = Buffer.concat([this.bytes, Buffer.from(chunk)])
    return this.#receiver.data?.(chunk) ?? true
  }
}

export function describeEnd(end: CallEnd): string {
  switch (end.kind) {
    case 'complete':
      return 'complete'
    case 'cut':
      return `cut: ${codeOf(end.error)}`
    case 'failed':
      return `failed ${end.whole ? 'after' : end.sent ? 'while' : 'before'} sending: ${codeOf(end.error)}`
    case 'switched':
      return 'switched'
    case 'abandoned':
      return `abandoned ${end.sent ? 'after' : 'before'} sending`
  }
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.message
}
