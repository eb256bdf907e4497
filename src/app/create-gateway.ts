import { AdmissionQueues } from '../calls/admission-queue.ts'
import { boundEntry, Prices } from '../calls/call-plan.ts'
import { BackgroundQueue, ByteBudget, DecodingQueue, KeyShares } from '../calls/key-shares.ts'
import type { Config, UpstreamConfig } from '../config/read-config.ts'
import { whyNotSimulated } from '../config/simulator.ts'
import { TrustedProxies } from '../http/addresses.ts'
import type { Exchange } from '../http/exchange.ts'
import { openUpstream } from '../http/upstream-connection.ts'
import type { CallPoint, Gateway } from '../http-calls/gateway.ts'
import { OwnUpstreams, servedWhile } from '../http-calls/own-upstreams.ts'
import { atMostEvery, type Clock, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import { headerNames } from '../kernel/header-names.ts'
import { createUlidSource } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import { isRedactable } from '../kernel/secret.ts'
import { Outbox } from '../ledger/outbox.ts'
import type { SettlementSpool } from '../ledger/settlement-spool.ts'
import { SettlementWatch } from '../ledger/settlement-watch.ts'
import { createRefusedCalls, WaitingCalls } from '../ledger/unsent-calls.ts'
import { Deferrals } from '../objects/deferrals.ts'
import type { Discount } from '../pricing/amounts.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { OpenSockets } from '../sockets/open-sockets.ts'
import { CallCounts } from '../telemetry/call-counts.ts'
import { type ObserveCall, observeAll } from '../telemetry/call-log.ts'
import type { Traces } from '../telemetry/traces.ts'
import type { ResolveHost } from '../webhooks/endpoint-address.ts'
import type { Installation, StoreSurroundings } from './installation.ts'
import type { PriceSource } from './price-source.ts'
import { RealUpstream } from './real-upstream.ts'

const BUFFERED_REPLIES_BYTES_MAX = 512 * 1024 ** 2

export interface Surroundings extends Omit<StoreSurroundings, 'clock'> {
  readonly clock?: Clock
  /** Lets tests kill the process at a named point of a call. */
  reached?(point: CallPoint): void
  /** Serve only own paths; do not poll, deliver or delete anything. */
  readonly maintenance?: boolean
  /** Whether the configured upstreams are the built-in simulator. */
  readonly simulator?: boolean
  readonly observeCall?: ObserveCall
  readonly dashboardDir?: URL
  /** Resolves host names of webhooks, by default with the system's name servers. Tests replace it. */
  readonly resolveHost?: ResolveHost
}

/** The parts from which the gateway and the management API are created. */
export interface Opened {
  readonly config: Config
  readonly surroundings: Surroundings
  readonly installation: Installation
  /** Null with SQLite. */
  readonly spool: SettlementSpool | null
  readonly priceSource: PriceSource
  readonly discount: Discount
}

/** The gateway, and the parts of it that only management, the server and shutdown need. */
export type CreatedGateway = Awaited<ReturnType<typeof createGateway>>

export async function createGateway(opened: Opened) {
  const { config, surroundings, installation, spool, priceSource, discount } = opened
  const { log } = surroundings
  const { store, clock, digestKey } = installation
  const nextUlid = createUlidSource(clock)
  const counts = new CallCounts(priceSource.book)
  const traces = await openTraces(config, surroundings, clock)
  const prices = new Prices(priceSource.book, {
    discount,
    unpriced: config.unpriced,
    chatDefaultTier: config.chatDefaultTier,
    chatRegional: SURFACES.chat.upstream.regionalHost?.test(config.chat?.url.hostname ?? '') ?? false,
    polls: config.deferredPoll,
  })
  const settlements = new SettlementWatch()
  const outbox = new Outbox({ store, spool, log, onSettled: (requestId) => settlements.settled(requestId) })
  const queues = new AdmissionQueues(config.budgetWaitMs)

  const names = headerNames(config.prefix, secretsIn(config), config.showBalance)
  const ownUpstreams = new OwnUpstreams(installation.upstreamSealer, log, config.egress)
  await ownUpstreams.load(store)
  const open = (upstream: UpstreamConfig | null) =>
    upstream === null ? null : openUpstream(upstream, log, config.egress)
  const configured = { messages: open(config.messages), chat: open(config.chat) }
  const hasSimulator = surroundings.simulator === true
  const simulated = hasSimulator ? [configured.messages, configured.chat] : []
  const realUpstream = await RealUpstream.read(
    store,
    new Set(simulated.map((upstream) => upstream?.url.origin ?? '')),
  )
  const reasonNotSimulated = () =>
    whyNotSimulated(config, {
      hasOwnUpstreams: ownUpstreams.isUsed,
      hasRealUpstream: realUpstream.hasAnswered,
    })
  const isSimulated = () => hasSimulator && reasonNotSimulated() === null
  const upstreams = hasSimulator ? servedWhile(isSimulated, configured) : configured

  const trustedProxies = config.trustedProxies.length === 0 ? null : new TrustedProxies(config.trustedProxies)
  const isSecure = ({ req, headers }: Exchange) =>
    req.source.isEncrypted || trustedProxies?.isForwardedTls(req.source.remoteAddress, headers) === true

  const gateway: Gateway = {
    clock,
    log,
    store,
    nextRequestId: () => `req_${nextUlid()}`,
    sockets: new OpenSockets(store, clock),
    credentials: {
      servicePrefix: config.prefix,
      digestKey,
      bootstrapDigest: config.adminKey && digestKey(config.adminKey.reveal()),
    },
    reading: {
      memory: new ByteBudget(limits.bodiesMemoryBytesMax),
      times: { idleTimeoutMs: config.bodyIdleTimeoutMs, bytesPerSecondMin: config.bodyBytesPerSecondMin },
      decoding: new DecodingQueue(limits.bodiesDecodingMax),
      boundEntry: (...entry) => boundEntry(...entry, prices, clock.nowMs()),
    },
    upstreams,
    ownUpstreams,
    stateful: config.stateful,
    isMaintenance: surroundings.maintenance === true,
    hasSignIn: config.signIn !== null,
    minting: config.minting,
    inFlight: { count: 0, preflights: 0 },
    keyShares: new KeyShares(config.callsInFlightPerKeyMax),
    background: new BackgroundQueue(),
    queues,
    waitingCalls: new WaitingCalls(),
    refusedCalls: createRefusedCalls(store, log),
    counts,
    observeCall: observeAll([surroundings.observeCall, traces?.observe, realUpstream.observe]),
    bodiesBytesMax: config.bodiesBytesMax,
    recordsClients: config.clientDetails,
    budgetMode: config.budgetMode,
    unboundedNanos: config.unboundedHoldNanos,
    prices,
    outbox,
    deferrals: new Deferrals({
      store,
      upstreams,
      ownUpstreams,
      outbox,
      counts,
      queues,
      clock,
      log,
      names,
      polls: config.deferredPoll,
    }),
    bufferedReplies: new ByteBudget(BUFFERED_REPLIES_BYTES_MAX),
    isSecure: config.rewriteResultsUrl ? isSecure : null,
    injectUsage: config.injectUsage,
    onLeave: config.onLeave,
    reached: surroundings.reached ?? (() => {}),
  }
  return {
    /** `configured`: the upstreams of the configuration. `gateway.ownUpstreams` has those of accounts. */
    gateway,
    names,
    nextUlid,
    settlements,
    traces,
    trustedProxies,
    configured,
    isSecure,
    isSimulated,
    reasonNotSimulated,
    /** Whether this node can send a call anywhere. */
    async hasUpstream(): Promise<boolean> {
      if (upstreams.messages !== null || upstreams.chat !== null) return true
      // Another node may have given an account its own upstream.
      if (!ownUpstreams.isUsed) await ownUpstreams.load(store)
      return ownUpstreams.isUsed
    },
  }
}

/** Secrets that redaction cannot recognise by their form: upstream keys, fixed headers and a configured admin key. */
function secretsIn({ messages, chat, adminKey }: Config): string[] {
  const keys = [messages?.key, chat?.key, adminKey].map((secret) => secret?.reveal())
  const lines = [messages, chat].flatMap((upstream) => upstream?.fixedHeaders ?? [])
  const values = lines.filter((_, at) => at % 2 === 1)
  return [...keys, ...values].filter((text) => text !== undefined).filter(isRedactable)
}

async function openTraces({ traces }: Config, { log }: Surroundings, clock: Clock): Promise<Traces | null> {
  if (traces === null) return null
  const telemetry = await import('../telemetry/traces.ts')
  const warn = (problem: string) => log.warn({ problem }, 'traces cannot be sent')
  return telemetry.openTraces(traces, atMostEvery(WARN_INTERVAL_MS, clock, warn))
}
