import { join } from 'node:path'
import { type Config, ConfigError, type UpstreamConfig } from './config.ts'
import { AdmissionQueues } from './gateway/admission-queue.ts'
import { createDeferrals } from './gateway/deferrals.ts'
import { Estimates } from './gateway/estimates.ts'
import type { CallPoint, Gateway } from './gateway/gateway.ts'
import { openFrontDoor, shapeBroken } from './gateway/handle-request.ts'
import { BackgroundQueue, ByteBudget, DecodingTurns, KeyShares } from './gateway/key-shares.ts'
import { OwnUpstreams, unlessSimulated, upstreamKeys } from './gateway/own-upstreams.ts'
import { bootstrapDigestOf } from './gateway/parse-credential.ts'
import { createPricer } from './gateway/pricer.ts'
import { createSettlementWatch, createSettler } from './gateway/settle.ts'
import { OpenSockets } from './gateway/turns/open-sockets.ts'
import { TrustedProxies } from './http/addresses.ts'
import type { Exchange } from './http/exchange.ts'
import type { BodyTimes } from './http/incoming-request.ts'
import { checkNodeSockets } from './http/node-sockets.ts'
import { createHttpServer } from './http/server.ts'
import type { CertificatePair } from './http/tls-handshakes.ts'
import { openUpstream } from './http/upstream-connection.ts'
import { type Installation, openInstallation, type StoreSurroundings } from './installation.ts'
import {
  atMostEvery,
  type Clock,
  loadLater,
  systemClock,
  unlessLate,
  untilQuiet,
  WARN_INTERVAL_MS,
} from './kernel/clock.ts'
import { InstallationError } from './kernel/errors.ts'
import { headerNames } from './kernel/header-names.ts'
import { createUlidSource } from './kernel/ids.ts'
import { limits } from './kernel/limits.ts'
import type { Log } from './kernel/log.ts'
import { isRedactable, SeenSecrets } from './kernel/secret.ts'
import { SURFACE_NAMES } from './kernel/vocabulary.ts'
import { startRetention } from './ledger/retention.ts'
import type { SettlementSpool } from './ledger/settlement-spool.ts'
import { RefusedCalls, WaitingCalls } from './ledger/unsent-calls.ts'
import { answerDashboard, DASHBOARD_DIR, isDashboardPath, readDashboard } from './management/dashboard.ts'
import { answerHealth, createWriteProbe, isHealthPath } from './management/health.ts'
import type { Management, ServingNode } from './management/route.ts'
import type { Discount } from './pricing/amounts.ts'
import { shippedBook } from './pricing/compile-version.ts'
import type { PriceBook } from './pricing/price-book.ts'
import { SURFACES } from './providers/surfaces.ts'
import { type Certificate, outOfDate, readCertificate } from './read-certificate.ts'
import { readPricing } from './read-pricing.ts'
import { CallCounts } from './telemetry/call-counts.ts'
import { type ObserveCall, observeAll } from './telemetry/call-log.ts'
import type { MetricSources } from './telemetry/metric-table.ts'
import type { Traces } from './telemetry/traces.ts'
import { createWebhookDispatcher } from './webhooks/dispatcher.ts'
import { createResolveHost, type EndpointRules, type ResolveHost } from './webhooks/endpoint-address.ts'

const HELD_REPLIES_BYTES_MAX = 512 * 1024 ** 2

/** How long shutdown waits for the last traces. After that, they are lost. */
const TRACES_FLUSH_MS = 3_000

/** How long a scrape waits for figures from the database. After that, it is answered without them. */
const SCRAPE_STORE_MS = 2_000

export interface RunningTollgate {
  reloadPrices(overlayText: string): Promise<readonly string[]>
  reloadCertificate(): readonly string[]
  readonly certificate: Certificate | null
  readonly isSimulated: boolean
  readonly host: string
  readonly port: number
  readonly firstAdminKey: string | null
  /** Stops in the reverse order of starting: readiness, new connections, running streams, upstream, store. */
  stop(): Promise<{ cutStreams: number }>
}

export interface Surroundings extends Pick<StoreSurroundings, 'log' | 'storeAnswerMs' | 'onFatal'> {
  readonly clock?: Clock
  /** Lets tests kill the process at a named point of a call. */
  reached?(point: CallPoint): void
  /** Serve only own paths; do not poll, deliver or delete anything. */
  readonly maintenance?: boolean
  readonly simulator?: boolean
  readonly observeCall?: ObserveCall
  /** Lets tests make the disk fail; see the SQLite worker. */
  readonly diskFault?: SharedArrayBuffer
  readonly dashboardDir?: URL
  /** Resolves host names of webhooks, by default with the system's name servers. Tests replace it. */
  readonly resolveHost?: ResolveHost
}

/** Secrets that redaction cannot recognise by their form: upstream keys and a configured admin key. */
function secretsIn({ messages, chat, adminKey }: Config): string[] {
  const known = [messages?.key, chat?.key, adminKey].map((secret) => secret?.reveal())
  return known.filter((text) => text !== undefined).filter(isRedactable)
}

/** The management API loads this long after the start: it takes 0.2 s, and no call needs it. */
const MANAGEMENT_AFTER_MS = 1_000

/** Stores price versions before the first call is billed with them. */
async function storePriceVersions(
  store: Pick<Installation['store'], 'storePriceVersion'>,
  { versions }: PriceBook,
): Promise<void> {
  await Promise.all(versions.map(({ id, entry }) => store.storePriceVersion(id, JSON.stringify(entry))))
}

async function openTraces({ traces }: Config, { log }: Surroundings, clock: Clock): Promise<Traces | null> {
  if (traces === null) return null
  const telemetry = await import('./telemetry/traces.ts')
  const warn = (problem: string) => log.warn({ problem }, 'traces cannot be sent')
  return telemetry.openTraces(traces, atMostEvery(WARN_INTERVAL_MS, clock, warn))
}

function pairOf({ cert, key }: Certificate): CertificatePair {
  return { cert, key: key.reveal() }
}

/** The composition root: configuration → store → services → server. Everything is created here and passed down. */
export async function startTollgate(config: Config, surroundings: Surroundings): Promise<RunningTollgate> {
  const { clock = systemClock } = surroundings
  checkNodeSockets()
  const { book, discount } = await readPricing(config)
  const certificate = config.tls === null ? null : readCertificate(config.tls)
  const installation = await openInstallation(config, {
    ...surroundings,
    clock,
    diskFault: surroundings.diskFault ?? null,
  })
  let spool: SettlementSpool | null = null
  try {
    spool = await openSpool(config, surroundings.log)
    return await serveFrom(installation, spool, config, surroundings, book, discount, certificate)
  } catch (error) {
    await spool?.close()
    await installation.close()
    throw error
  }
}

/** The spool stores settlements on the local disk while PostgreSQL is unavailable. SQLite needs none. */
async function openSpool({ databaseUrl, dataDir }: Config, log: Log): Promise<SettlementSpool | null> {
  if (databaseUrl === null) return null
  const dir = join(dataDir, 'spool')
  const { openSettlementSpool } = await import('./ledger/settlement-spool.ts')
  try {
    return await openSettlementSpool(dir, log)
  } catch (error) {
    throw new InstallationError(`${dir} cannot be opened: ${(error as Error).message}`)
  }
}

async function serveFrom(
  installation: Installation,
  spool: SettlementSpool | null,
  config: Config,
  surroundings: Surroundings,
  book: PriceBook,
  discount: Discount,
  certificate: Certificate | null,
): Promise<RunningTollgate> {
  const { log } = surroundings
  const { store, clock, digestKey, webhookSealer, upstreamSealer } = installation
  const counts = new CallCounts(book)
  const traces = await openTraces(config, surroundings, clock)
  if (installation.interruptedCalls > 0) {
    log.warn(
      { calls: installation.interruptedCalls },
      'calls that were in flight when the gateway last stopped are closed as interrupted, at no charge',
    )
  }
  await storePriceVersions(store, book)

  const pricer = createPricer(book, {
    discount,
    unpriced: config.unpriced,
    chatDefaultTier: config.chatDefaultTier,
    chatRegional: SURFACES.chat.upstream.regionalHost?.test(config.chat?.url.hostname ?? '') ?? false,
    polls: config.deferredPoll,
  })
  const nextUlid = createUlidSource(clock)
  const settlements = createSettlementWatch()
  const settler = createSettler({ store, watch: settlements, spool, log })
  const background = new BackgroundQueue()
  const queues = new AdmissionQueues(config.budgetWaitMs)
  const waitingCalls = new WaitingCalls()
  const refusedCalls = new RefusedCalls(store, log)
  const open = (upstream: UpstreamConfig | null) => (upstream === null ? null : openUpstream(upstream, log))
  const seen = new SeenSecrets()
  const ownUpstreams = new OwnUpstreams(upstreamSealer, seen, log)
  const names = headerNames(config.prefix, secretsIn(config), config.showBalance, seen)
  await ownUpstreams.load(store)
  const configured = { messages: open(config.messages), chat: open(config.chat) }
  const isSimulated = () => surroundings.simulator === true && !ownUpstreams.isUsed
  const upstreams = unlessSimulated(configured, surroundings.simulator === true, ownUpstreams)
  const trustedProxies = config.trustedProxies.length === 0 ? null : new TrustedProxies(config.trustedProxies)
  const bodyTimes: BodyTimes = {
    idleTimeoutMs: config.bodyIdleTimeoutMs,
    bytesPerSecondMin: config.bodyBytesPerSecondMin,
  }
  const estimates = new Estimates()
  const deferrals = createDeferrals({
    ...{ store, upstreams, ownUpstreams, settler, counts, queues, clock, estimates, log, names },
    polls: config.deferredPoll,
  })
  let ready = true

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
      bootstrapDigest: bootstrapDigestOf(config.adminKey, digestKey),
    },
    reading: {
      memory: new ByteBudget(limits.bodiesMemoryBytesMax),
      times: bodyTimes,
      decoding: new DecodingTurns(limits.bodiesDecodingMax),
      boundEntry: (...entry) => pricer.boundEntry(...entry, clock.nowMs()),
    },
    upstreams,
    ownUpstreams,
    stateful: config.stateful,
    isMaintenance: surroundings.maintenance === true,
    minting: config.minting,
    inFlight: { count: 0, preflights: 0 },
    keyShares: new KeyShares(config.callsInFlightPerKeyMax),
    background,
    queues,
    waitingCalls,
    refusedCalls,
    counts,
    observeCall: observeAll([surroundings.observeCall, traces?.observe]),
    bodiesBytesMax: config.bodiesBytesMax,
    budgetMode: config.budgetMode,
    unboundedNanos: config.unboundedHoldNanos,
    pricer,
    settler,
    deferrals,
    bufferedReplies: new ByteBudget(HELD_REPLIES_BYTES_MAX),
    isSecure: config.rewriteResultsUrl ? isSecure : null,
    injectUsage: config.injectUsage,
    onLeave: config.onLeave,
    estimates,
    reached: surroundings.reached ?? (() => {}),
  }
  const canWrite = createWriteProbe(() => store.probeWrite(), clock)
  const isReady = async (): Promise<boolean> => ready && settler.isDurable && (await canWrite())
  let currentBook = book
  let shipped: PriceBook | null = null
  const node: ServingNode = {
    storeKind: config.databaseUrl === null ? 'sqlite' : 'postgres',
    get simulator() {
      return isSimulated()
    },
    alertThresholds: config.budgetThresholdsPercent,
    callsInFlight: () => gateway.inFlight.count,
    callsWaiting: () => waitingCalls.count,
    prices() {
      shipped ??= config.prices === null ? currentBook : shippedBook()
      return { book: currentBook, shipped, overlayFile: config.prices?.file ?? null }
    },
  }
  const webhookRules: EndpointRules = {
    allowPrivate: config.webhooksAllowPrivate,
    resolveHost: surroundings.resolveHost ?? createResolveHost(config.webhooksAllowPrivate),
  }
  await store.setBudgetThresholds(config.budgetThresholdsPercent)
  await store.setBalanceLow(config.balanceLowNanos)
  const webhooks = createWebhookDispatcher({
    store,
    clock,
    log,
    sealer: webhookSealer,
    rules: webhookRules,
    dashboardUrl: config.dashboardUrl,
  })
  const metricSources: Omit<MetricSources, 'eventLoopDelay'> = {
    ...{ counts, load: store.load, inFlight: gateway.inFlight, waitingCalls },
    webhookFailures: () => webhooks.failures,
    webhooksWaiting: () => unlessLate(webhooks.waiting(), SCRAPE_STORE_MS),
    connections: (surface) => configured[surface]?.pool.connections ?? null,
    heldNanos: () => unlessLate(store.sumHeld(), SCRAPE_STORE_MS),
    deferredObjects: () => unlessLate(store.countDeferred(), SCRAPE_STORE_MS),
    nowMs: () => clock.nowMs(),
  }
  // Loaded with the first scrape, because prom-client is slow to load.
  const scraper = loadLater(
    async () => (await import('./telemetry/scrape.ts')).createScraper(metricSources),
    null,
  )
  // The URL of the simulator changes with every start, and an account's key must not be sent there.
  const installed = surroundings.simulator === true ? { messages: null, chat: null } : config
  const accountKeys = upstreamKeys(installed, upstreamSealer, ownUpstreams, store)
  const parts: Management = {
    clock,
    nextUlid,
    digestKey,
    servicePrefix: config.prefix,
    store,
    bodyTimes,
    isSecure,
    metricsPublic: config.metricsPublic,
    settlements,
    upstreamKeys: {
      ...accountKeys,
      async changed() {
        const wasSimulated = isSimulated()
        await accountKeys.changed()
        if (wasSimulated === isSimulated()) return
        log.warn(
          wasSimulated
            ? 'an account has its own upstream now, so the built-in simulator is off'
            : 'no account has its own upstream any more, so the built-in simulator serves again',
        )
      },
    },
    waitingCalls,
    refusedCalls,
    node,
    scrapeMetrics: async () => await (await scraper.get())(),
    recheckWaitingCalls: () => queues.signalAll(),
    webhooks: { sealer: webhookSealer, rules: webhookRules, wake: () => webhooks.wake() },
  }
  const management = loadLater(() => import('./management/router.ts'), MANAGEMENT_AFTER_MS)
  const dashboardDir = surroundings.dashboardDir ?? DASHBOARD_DIR
  const dashboard = loadLater(() => readDashboard(dashboardDir), MANAGEMENT_AFTER_MS)

  const server = createHttpServer({
    clock,
    nextUlid,
    names,
    onExchange: openFrontDoor(gateway, async (exchange, target, credential) => {
      if (isHealthPath(target)) return await answerHealth(exchange, target, isReady)
      if (isDashboardPath(target)) return await answerDashboard(exchange, target, dashboard.get)
      const { handleOwned } = await management.get()
      await handleOwned(exchange, target, credential, parts)
    }),
    shapeBroken(refusal, head, requestId) {
      counts.countRefusal(refusal.code)
      return shapeBroken(refusal, head, requestId)
    },
    trustedProxies,
    connectionsPerAddressMax: config.connectionsPerAddressMax === 0 ? null : config.connectionsPerAddressMax,
    onCrowded: atMostEvery(WARN_INTERVAL_MS, clock, (address: string) => {
      const about = { address, connections: config.connectionsPerAddressMax }
      log.warn(about, 'connections above the limit are closed; for a proxy, set trusted_proxies')
    }),
    certificate: certificate === null ? null : pairOf(certificate),
  })
  const address = await server.listen(config.host, config.port)
  if (!gateway.isMaintenance) {
    void settler.replay(spool?.pending() ?? [], (closing) => void counts.countReplay(closing, store))
    webhooks.start()
    if (config.deferredPoll) deferrals.start()
  }
  const retention = gateway.isMaintenance ? null : startRetention(store, clock, config, log)

  return {
    async reloadPrices(overlayText) {
      const { loadPrices } = await import('./pricing/load-book.ts')
      const loaded = loadPrices(overlayText)
      if (loaded.kind === 'refused') return loaded.problems
      await storePriceVersions(store, loaded.book)
      pricer.use(loaded.book)
      currentBook = loaded.book
      counts.useBook(loaded.book)
      return []
    },
    reloadCertificate() {
      if (config.tls === null) return []
      try {
        const renewed = readCertificate(config.tls)
        const warning = outOfDate(renewed, clock.nowMs())
        if (warning !== null) log.warn(warning)
        server.useCertificate(pairOf(renewed))
        return []
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        return error.problems
      }
    },
    certificate,
    get isSimulated() {
      return isSimulated()
    },
    host: address.address,
    port: address.port,
    firstAdminKey: installation.firstAdminKey,
    async stop() {
      ready = false
      retention?.stop()
      await deferrals.stop()
      management.cancel()
      dashboard.cancel()
      queues.close()
      gateway.sockets.drain(config.drainMs)
      const drainedByMs = performance.now() + config.drainMs
      const cutStreams = await server.drain(config.drainMs)
      // The gateway may still be reading calls whose clients have left.
      await untilQuiet(() => gateway.inFlight.count === 0, drainedByMs - performance.now())
      for (const surface of SURFACE_NAMES) configured[surface]?.pool.destroy()
      ownUpstreams.destroy()
      // Keep the database open: calls that were cut are still being settled.
      await untilQuiet(
        () => gateway.inFlight.count === 0 && settler.waiting === 0 && background.count === 0,
        limits.settleOnStopMs,
      )
      await refusedCalls.written()
      await webhooks.stop()
      if (traces !== null) await unlessLate(traces.close(), TRACES_FLUSH_MS)
      // Close the spool before the data directory is unlocked, or another process could read it during a write.
      if (spool !== null) {
        await store.close()
        await spool.close()
        if (spool.waiting > 0) log.warn({ settlements: spool.waiting }, 'settlements wait in the spool')
      }
      await installation.close()
      return { cutStreams: cutStreams + gateway.sockets.turnsCut }
    },
  }
}
