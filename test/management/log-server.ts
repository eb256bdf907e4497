import { sendWhole } from '../../src/http/exchange.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import type { CallRecord } from '../../src/ledger/call.ts'
import type { CallFilter, CallPage } from '../../src/ledger/request-log.ts'
import type { Management } from '../../src/management/route.ts'
import { handleOwned } from '../../src/management/router.ts'

export interface LogServer {
  readonly host: string
  readonly port: number
  readonly url: string
  /** How often the store was asked for calls. */
  looks(): number
  /** Resolves when the store has been asked so often. */
  looked(count: number): Promise<void>
  /** Resolves when so many requests have been handled to their end. */
  exchangesEnded(count: number): Promise<void>
  close(): Promise<void>
}

export interface LogOptions {
  /** Every look fails. */
  readonly isAway?: boolean
  /** No look ends before the client has left. */
  readonly isSlow?: boolean
}

/** The management API over a log that has no end, and in which no model is ever found. */
export async function startLogServer(options: LogOptions = {}): Promise<LogServer> {
  let looks = 0
  let left = 0
  let ended = 0
  let watchers: (() => void)[] = []
  const notify = () => {
    for (const watcher of watchers) watcher()
  }
  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const watcher = () => {
        if (!isSo()) return
        watchers = watchers.filter((each) => each !== watcher)
        resolve()
      }
      watchers.push(watcher)
      watcher()
    })

  const store = {
    async listCalls(filter: CallFilter, _after: unknown, limit: number): Promise<CallPage> {
      looks += 1
      notify()
      // A store takes a turn of the event loop at least, in which other things happen.
      await new Promise((resolve) => setImmediate(resolve))
      if (options.isSlow === true) await until(() => left > 0)
      if (options.isAway === true) throw new StoreUnavailable('away')
      const next = { startedAtMs: 1_000, requestId: CALL.requestId }
      return { calls: filter.model === null ? new Array<CallRecord>(limit).fill(CALL) : [], next }
    },
    readKeyNames: async () => [{ id: CALL.keyId, name: 'busy' }],
    lookUpKey: async () =>
      ({ kind: 'admin_key', keyId: 'adm_1', name: '', role: 'operator', accountId: null }) as const,
  }
  const management = { clock: systemClock, store } as unknown as Management
  const bodyTimes = { idleTimeoutMs: 1_000, bytesPerSecondMin: 0, monotonicMs: () => 0 }
  const parts = { management, bodyTimes, isSecure: () => false, metricsPublic: false }
  const away = { status: 503, headers: ['content-length', '0'], body: Buffer.alloc(0) }

  const server = createHttpServer({
    clock: systemClock,
    nextUlid: createUlidSource(systemClock),
    names: headerNames('svc'),
    onExchange(exchange) {
      exchange.res.whenClosed.add(() => {
        left += 1
        notify()
      })
      const [path = '', query = ''] = exchange.req.target.split('?')
      const identity = { kind: 'key', digest: Buffer.alloc(32) } as const
      handleOwned(exchange, { path, query: `?${query}` }, identity, parts)
        .catch(() => sendWhole(exchange, away))
        .finally(() => {
          ended += 1
          notify()
        })
    },
    shapeBroken: () => away,
    refuseExchange: (exchange) => sendWhole(exchange, away),
  })
  const { port } = await server.listen('127.0.0.1', 0)
  return {
    host: '127.0.0.1',
    port,
    url: `http://127.0.0.1:${port}`,
    looks: () => looks,
    looked: (count) => until(() => looks >= count),
    exchangesEnded: (count) => until(() => ended >= count),
    async close() {
      await server.drain(0)
    },
  }
}

const CALL: CallRecord = {
  requestId: 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  accountId: 'default',
  keyId: 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  state: 'settled',
  objectId: null,
  parentId: null,
  children: null,
  childrenNanos: null,
  socketId: null,
  startedAtMs: 1_000,
  endedAtMs: 2_000,
  method: 'POST',
  path: '/v1/messages',
  surface: 'messages',
  modelAsked: 'claude-opus-4-8',
  modelServed: 'claude-opus-4-8',
  status: 200,
  stopReason: 'end_turn',
  streamed: true,
  estimated: false,
  unpriced: false,
  overrun: false,
  pricedAsRequested: false,
  usage: '{}',
  tokens: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 },
  costNanos: 800n,
  listNanos: 1_000n,
  lostListNanos: 0n,
  holdNanos: 0n,
  holdListNanos: 0n,
  balanceNanos: -800n,
  upstreamMs: 450,
  overheadMs: 3,
  priceVersion: 'test',
  rating: '{}',
  upstreamRequestId: null,
  clientIp: '127.0.0.1',
  userAgent: null,
  bytesIn: 100,
  bytesOut: 200,
  credited: false,
  code: null,
}
