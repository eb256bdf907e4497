import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { answerRequest, type RequestEntry, type Simulation, type SocketEntry } from './answer-request.ts'
import { BatchStore } from './batch-store.ts'
import { FileStore } from './file-store.ts'
import { connectionsMax, headBytesMax } from './limits.ts'
import type { PaceMode } from './pace.ts'
import { PromptCache } from './prompt-cache.ts'
import { ResponseStore } from './responses/response-store.ts'
import { createSocketDoor } from './sockets/accept-socket.ts'
import { createWorkClock } from './work-clock.ts'

export interface SimulatorOptions {
  readonly host?: string
  /** 0, the default, takes any free port. */
  readonly port?: number
  /** The provider key that Messages calls must carry; without it any call is welcome. */
  readonly messagesKey?: string
  readonly chatKey?: string
  readonly pace?: PaceMode
  /**
   * How many times faster than real time background work goes: batches, background responses.
   * The default is 1, and endless where the pace is instant and no clock is given.
   */
  readonly hurry?: number
  /** The clock in milliseconds that background work goes by, for a test that moves the time by hand. */
  readonly clock?: () => number
  /** Ids and times follow from the request alone: the same request gets the same bytes. */
  readonly deterministic?: boolean
  /** Called once per request, when its body was read or the request was refused before that. */
  readonly onRequest?: (entry: RequestEntry) => void
  /** Called for each message of a client on a socket, and when the socket is closed. */
  readonly onSocket?: (entry: SocketEntry) => void
}

export interface Simulator {
  readonly host: string
  readonly port: number
  /** Where a Messages client points: the SDK adds /v1 itself. */
  readonly messagesUrl: string
  /** Where a Chat client points: the SDK's base URL ends in /v1. */
  readonly chatUrl: string
  /** Requests received so far. */
  readonly requests: number
  /** Requests whose client left before the reply was complete. */
  readonly aborted: number
  /** Resolves when `requests` or `aborted` grows next. */
  counted(): Promise<void>
  /** Sockets that are open. */
  readonly sockets: number
  close(): Promise<void>
}

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const isWaiting = options.pace === 'realistic' || options.clock !== undefined
  const simulation: Simulation = {
    messagesKey: options.messagesKey,
    chatKey: options.chatKey,
    mode: options.pace ?? 'instant',
    isDeterministic: options.deterministic ?? false,
    memory: {
      promptCache: new PromptCache(),
      files: { messages: new FileStore(), chat: new FileStore() },
      responses: new ResponseStore(),
      batches: { messages: new BatchStore(), chat: new BatchStore() },
    },
    clock: createWorkClock(
      options.clock ?? Date.now,
      options.hurry ?? (isWaiting ? 1 : Number.POSITIVE_INFINITY),
    ),
    bodyBudget: { bytes: 0 },
    onRequest: options.onRequest,
    onSocket: options.onSocket,
  }
  const counters = { requests: 0, aborted: 0 }
  let counted = Promise.withResolvers<void>()
  const count = (what: keyof typeof counters): void => {
    counters[what] += 1
    counted.resolve()
    counted = Promise.withResolvers()
  }

  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    count('requests')
    const leaving = new AbortController()
    let isBrokenByUs = false
    res.on('close', () => {
      if (res.writableFinished || isBrokenByUs) return
      leaving.abort()
      count('aborted')
    })
    const breakOff = (isReset: boolean): void => {
      isBrokenByUs = true
      if (isReset) req.socket.resetAndDestroy()
      else res.destroy()
    }
    try {
      const exchange = { req, res, nth: counters.requests, signal: leaving.signal }
      const outcome = await answerRequest(simulation, exchange)
      if (outcome === 'cut' || outcome === 'reset') breakOff(outcome === 'reset')
    } catch (error) {
      // The failure happened while the reply was written: the only honest end of the reply is a broken connection.
      console.error('simulator:', error)
      breakOff(false)
    }
  }

  const door = createSocketDoor(simulation)
  const server = createServer({
    maxHeaderSize: headBytesMax,
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
    // Node ignores any other upgrade, as it would without a listener.
    shouldUpgradeCallback: ({ method, headers }) =>
      method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
  })
  server.maxConnections = connectionsMax
  server.on('request', handle)
  // Without this listener Node would answer 100 Continue before the key has been looked at.
  server.on('checkContinue', handle)
  server.on('upgrade', (req, socket, head) => {
    count('requests')
    door.accept({ req, socket, head, nth: counters.requests })
  })

  const host = options.host ?? '127.0.0.1'
  server.listen(options.port ?? 0, host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`

  return {
    host,
    port,
    messagesUrl: origin,
    chatUrl: `${origin}/v1`,
    get requests() {
      return counters.requests
    },
    get aborted() {
      return counters.aborted
    },
    counted: () => counted.promise,
    get sockets() {
      return door.sockets.size
    },
    async close() {
      door.close()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
