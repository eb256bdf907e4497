import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { type ClientOptions, WebSocket } from 'ws'
import { dig } from './dig.ts'

export interface SocketServer {
  readonly host: string
  readonly port: number
}

/** A plain WebSocket client: tests see the messages on the wire, without an SDK. */
export interface SocketClient {
  readonly ws: WebSocket
  readonly headers: IncomingHttpHeaders
  readonly received: readonly unknown[]
  send(event: object | string): void
  /** The messages not taken yet, up to the first match. */
  takeUntil(fits: (event: unknown) => boolean): Promise<unknown[]>
  takeType(type: string): Promise<unknown>
  closed(): Promise<{ code: number; reason: string }>
}

export async function openSocket(
  server: SocketServer,
  path: string,
  options: ClientOptions & { protocols?: string[]; behaviour?: string } = {},
): Promise<SocketClient> {
  const { protocols = [], behaviour, ...rest } = options
  const headers = { ...rest.headers, ...(behaviour === undefined ? {} : { 'x-simulator': behaviour }) }
  const ws = new WebSocket(`ws://${server.host}:${server.port}${path}`, protocols, {
    perMessageDeflate: false,
    ...rest,
    headers,
  })
  const received: unknown[] = []
  let taken = 0
  let isOver = false
  let wake = (): void => undefined
  ws.on('message', (data) => {
    const text = data.toString()
    received.push(isJson(text) ? JSON.parse(text) : text)
    wake()
  })
  const ended = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.on('close', (code, reason) => {
      isOver = true
      wake()
      resolve({ code, reason: reason.toString() })
    })
  })
  const [[{ headers: answered }]] = await Promise.all([once(ws, 'upgrade'), once(ws, 'open')])
  ws.on('error', () => undefined)

  const takeUntil = async (fits: (event: unknown) => boolean): Promise<unknown[]> => {
    const from = taken
    for (;;) {
      while (taken < received.length) {
        taken += 1
        if (fits(received[taken - 1])) return received.slice(from, taken)
      }
      if (isOver) throw new Error(`The socket was closed after ${JSON.stringify(received.slice(from))}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return {
    ws,
    headers: answered,
    received,
    send: (event) => ws.send(typeof event === 'string' ? event : JSON.stringify(event)),
    takeUntil,
    takeType: async (type) => (await takeUntil((event) => dig(event, 'type') === type)).at(-1),
    closed: () => ended,
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export async function refusedSocket(
  server: SocketServer,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  const ws = new WebSocket(`ws://${server.host}:${server.port}${path}`, { headers })
  const [, response] = await once(ws, 'unexpected-response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return { status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) }
}

export const isTerminal = (event: unknown): boolean =>
  ['response.completed', 'response.incomplete', 'response.done', 'error'].includes(String(dig(event, 'type')))
