import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  behavioursOf,
  checkKey,
  errorReply,
  failureOf,
  identify,
  pathOf,
  report,
  type Simulation,
} from '../answer-request.ts'
import { chatHeaders, newChatRequestId } from '../chat/chat-wire.ts'
import { bodyBytesMax } from '../limits.ts'
import { wait } from '../pace.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { writeReply } from '../write-reply.ts'
import { EventSocket } from './event-socket.ts'
import { serveRealtime } from './realtime-session.ts'
import { serveResponses } from './responses-socket.ts'

const routes: ReadonlyMap<string, (socket: EventSocket) => void> = new Map([
  ['/v1/responses', serveResponses],
  ['/v1/realtime', serveRealtime],
])

const keyProtocol = 'openai-insecure-api-key.'
const nothing = Buffer.alloc(0)

/** Judges the handshake of a socket as a request, and refuses it with the same errors. */
export function createSocketDoor(simulation: Simulation) {
  const sockets = new Set<WebSocket>()
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: bodyBytesMax,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  })
  const requestIdOf = (req: IncomingMessage): string => newChatRequestId(identify(simulation, req, nothing))
  server.on('headers', (lines, req) => {
    for (const [name, value] of chatHeaders(requestIdOf(req))) lines.push(`${name}: ${value}`)
  })

  const judge = async (req: IncomingMessage, socket: Duplex, head: Buffer, nth: number): Promise<void> => {
    const left = new AbortController()
    socket.on('close', () => left.abort())
    socket.on('error', () => left.abort())
    report(simulation, req, nothing, true)
    try {
      checkKey('chat', withProtocolKey(req), simulation)
      const behaviours = behavioursOf(req)
      await wait(behaviours.delayMs ?? 0, left.signal)
      if (behaviours.reset === true && socket instanceof Socket) {
        socket.resetAndDestroy()
        return
      }
      if (behaviours.status !== undefined) throw failureOf('chat', behaviours.status)
      const serve = routes.get(pathOf(req))
      if (serve === undefined) throw new Refusal(404, `The simulator serves no sockets at ${pathOf(req)}.`)
      server.handleUpgrade(req, socket, head, (ws) => {
        sockets.add(ws)
        ws.on('close', () => sockets.delete(ws))
        serve(new EventSocket(ws, { simulation, req, nth, behaviours }))
      })
    } catch (error) {
      if (!(socket instanceof Socket) || left.signal.aborted) return
      const res = new ServerResponse(req)
      res.shouldKeepAlive = false
      res.assignSocket(socket)
      res.on('finish', () => socket.end())
      const reply = errorReply('chat', asRefusal(error), requestIdOf(req))
      const headers = [...reply.headers, ...chatHeaders(requestIdOf(req), reply.status)]
      const delivery = { res, behaviours: {}, mode: 'instant', signal: left.signal } as const
      await writeReply(delivery, { ...reply, headers })
    }
  }
  return {
    accept(req: IncomingMessage, socket: Duplex, head: Buffer, nth: number): void {
      judge(req, socket, head, nth).catch((error: unknown) => {
        console.error('simulator:', error)
        socket.destroy()
      })
    },
    close(): void {
      for (const ws of sockets) ws.terminate()
    },
  }
}

/** Browsers cannot set headers of a handshake: their key is one of the subprotocols. */
function withProtocolKey({ headers }: IncomingMessage): IncomingMessage['headers'] {
  if (headers.authorization !== undefined) return headers
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const carrier = offered.find((name) => name.startsWith(keyProtocol))
  if (carrier === undefined) return headers
  return { ...headers, authorization: `Bearer ${carrier.slice(keyProtocol.length)}` }
}
