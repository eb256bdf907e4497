import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { answerRequest, type RequestEntry, type Simulation, type SocketEntry } from './answer-request.ts'
import { BoundedMap } from './bounded-map.ts'
import { headBytesMax, storedObjectsMax } from './limits.ts'
import { createWorkClock, type PaceMode } from './pace.ts'
import { PromptCache } from './prompt-cache.ts'
import { createSocketDoor } from './sockets/accept-socket.ts'

export interface SimulatorOptions {
  /** The provider key that Messages calls must carry; without it any call is accepted. */
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
  close(): Promise<void>
}

const host = '127.0.0.1'

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const isWaiting = options.pace === 'realistic' || options.clock !== undefined
  const hurry = options.hurry ?? (isWaiting ? 1 : Number.POSITIVE_INFINITY)
  const simulation: Simulation = {
    messagesKey: options.messagesKey,
    chatKey: options.chatKey,
    mode: options.pace ?? 'instant',
    isDeterministic: options.deterministic ?? false,
    memory: {
      promptCache: new PromptCache(),
      files: new BoundedMap(storedObjectsMax),
      responses: new BoundedMap(storedObjectsMax),
      messageBatches: new BoundedMap(storedObjectsMax),
      chatBatches: new BoundedMap(storedObjectsMax),
    },
    clock: createWorkClock(options.clock ?? Date.now, hurry),
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
    const outcome = await answerRequest(simulation, req, res, leaving.signal).catch((error: unknown) => {
      // The failure happened while the reply was written: the only honest end of the reply is a broken connection.
      console.error('simulator:', error)
      return 'cut'
    })
    isBrokenByUs = outcome === 'cut' || outcome === 'reset'
    if (outcome === 'cut') res.destroy()
    if (outcome === 'reset') req.socket.resetAndDestroy()
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
  server.on('request', handle)
  // Without this listener Node would answer 100 Continue before the key has been checked.
  server.on('checkContinue', handle)
  server.on('upgrade', (req, socket, head) => {
    count('requests')
    door.accept(req, socket, head, counters.requests)
  })
  server.listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  return {
    host,
    port,
    messagesUrl: `http://${host}:${port}`,
    chatUrl: `http://${host}:${port}/v1`,
    get requests() {
      return counters.requests
    },
    get aborted() {
      return counters.aborted
    },
    counted: () => counted.promise,
    async close() {
      door.close()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
