import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  behaviourHeader,
  chooseBehaviours,
  errorReply,
  failureOf,
  pathOf,
  type Simulation,
} from '../answer-request.ts'
import type { Behaviours } from '../behaviours.ts'
import { chatHeaders } from '../chat/chat-headers.ts'
import { checkKey } from '../check-key.ts'
import { deterministicIdentity, fingerprintRequest, type Identity, uniqueIdentity } from '../identity.ts'
import { socketMessageBytesMax } from '../limits.ts'
import { wait } from '../pace.ts'
import { Refusal } from '../refusal.ts'
import { writeReply } from '../write-reply.ts'
import { EventSocket } from './event-socket.ts'
import { serveRealtime } from './realtime-session.ts'
import { serveResponses } from './responses-socket.ts'

interface Upgrade {
  readonly req: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  /** The position of this request among all. */
  readonly nth: number
}

export interface SocketDoor {
  readonly sockets: ReadonlySet<WebSocket>
  accept(upgrade: Upgrade): void
  close(): void
}

const routes: ReadonlyMap<string, (socket: EventSocket) => void> = new Map([
  ['/v1/responses', serveResponses],
  ['/v1/realtime', serveRealtime],
])

const keyProtocol = 'openai-insecure-api-key.'

/** The door for sockets: a handshake is judged as a request is, and refused in the same words. */
export function createSocketDoor(simulation: Simulation): SocketDoor {
  const sockets = new Set<WebSocket>()
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: socketMessageBytesMax,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  })
  server.on('headers', (lines, req) => {
    for (const [name, value] of chatHeaders(identify(simulation, req))) lines.push(`${name}: ${value}`)
  })

  const accept = async ({ req, socket, head, nth }: Upgrade): Promise<void> => {
    const left = new AbortController()
    socket.on('close', () => left.abort())
    socket.on('error', () => left.abort())
    simulation.onRequest?.({
      method: 'GET',
      path: req.url ?? '/',
      headersRaw: req.rawHeaders,
      trailersRaw: [],
      bodyBytes: Buffer.alloc(0),
      isComplete: true,
    })
    let behaviours: Behaviours = {}
    try {
      checkKey('chat', withProtocolKey(req), simulation.chatKey)
      behaviours = chooseBehaviours(req)
      await wait(behaviours.delayMs ?? 0, left.signal)
      if (behaviours.reset === true) return resetSocket(socket)
      if (behaviours.status !== undefined) throw failureOf('chat', behaviours.status)
      const path = pathOf(req)
      const serve = routes.get(path)
      if (serve === undefined)
        throw new Refusal(404, `Invalid URL (GET ${path}). The simulator serves no sockets there.`)
      const handshake = {
        simulation,
        nth,
        target: req.url ?? '/',
        query: new URLSearchParams((req.url ?? '').slice(path.length + 1)),
        behaviours,
        behaviourHeader: behaviourHeader(req),
      }
      server.handleUpgrade(req, socket, head, (ws) => {
        sockets.add(ws)
        ws.on('close', () => sockets.delete(ws))
        serve(new EventSocket(ws, socket, handshake))
      })
    } catch (error) {
      await refuse({ req, socket, behaviours, signal: left.signal, simulation }, error)
    }
  }
  return {
    sockets,
    accept(upgrade) {
      accept(upgrade).catch((error: unknown) => {
        console.error('simulator:', error)
        upgrade.socket.destroy()
      })
    },
    close() {
      for (const ws of sockets) ws.terminate()
    },
  }
}

interface Refused {
  readonly req: IncomingMessage
  readonly socket: Duplex
  readonly behaviours: Behaviours
  readonly signal: AbortSignal
  readonly simulation: Simulation
}

/** Refuses a handshake as any failing request is answered, and ends the connection. */
async function refuse(
  { req, socket, behaviours, signal, simulation }: Refused,
  error: unknown,
): Promise<void> {
  if (!(socket instanceof Socket) || signal.aborted) return
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  res.on('finish', () => socket.end())
  const reply = errorReply(error, 'chat', identify(simulation, req))
  const outcome = await writeReply(
    { res, behaviours, mode: 'instant', acceptEncoding: undefined, signal },
    reply,
  )
  if (outcome === 'cut') socket.destroy()
}

function resetSocket(socket: Duplex): void {
  if (socket instanceof Socket) socket.resetAndDestroy()
}

/** Browsers cannot set headers of a handshake: their key is one of the subprotocols. */
function withProtocolKey({ headers }: IncomingMessage): IncomingMessage['headers'] {
  if (headers.authorization !== undefined) return headers
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const carrier = offered.find((name) => name.startsWith(keyProtocol))
  if (carrier === undefined) return headers
  return { ...headers, authorization: `Bearer ${carrier.slice(keyProtocol.length)}` }
}

function identify(simulation: Simulation, req: IncomingMessage): Identity {
  if (!simulation.isDeterministic) return uniqueIdentity()
  const target = req.url ?? '/'
  const behaviours = behaviourHeader(req)
  return deterministicIdentity(
    fingerprintRequest({ method: 'GET', target, behaviours, contentType: '', body: Buffer.alloc(0) }),
  )
}
