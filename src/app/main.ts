import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Certificate, outOfDate, readCertificate } from '../config/read-certificate.ts'
import { type Config, ConfigError } from '../config/read-config.ts'
import { readOverlayText, readPricing } from '../config/read-pricing.ts'
import { checkNodeSockets } from '../http/node-sockets.ts'
import { HttpServer, type ServerOptions } from '../http/server.ts'
import type { CertificatePair } from '../http/tls-handshakes.ts'
import { openFrontDoor, shapeBroken } from '../http-calls/handle-request.ts'
import { atMostEvery, systemClock, WARN_INTERVAL_MS } from '../kernel/clock.ts'
import { unlessLate, untilQuiet } from '../kernel/deadlines.ts'
import { InstallationError } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import { loadLater } from '../kernel/shared-work.ts'
import { SURFACE_NAMES } from '../kernel/vocabulary.ts'
import { startRetention } from '../ledger/retention.ts'
import type { SettlementSpool } from '../ledger/settlement-spool.ts'
import { answerDashboard, DASHBOARD_DIR, isDashboardPath, readDashboard } from '../management/dashboard.ts'
import { answerHealth, createWriteProbe, isHealthPath } from '../management/health.ts'
import type { WebhookDispatcher } from '../webhooks/dispatcher.ts'
import { type CreatedGateway, createGateway, type Opened, type Surroundings } from './create-gateway.ts'
import { createManagement } from './create-management.ts'
import { openInstallation } from './installation.ts'
import { openMetricsListener } from './metrics-listener.ts'
import { ModelProbe } from './offered-models.ts'
import { openSignIn } from './open-sign-in.ts'
import { PriceSource } from './price-source.ts'

/** How long shutdown waits for the last traces. After that, they are lost. */
const TRACES_FLUSH_MS = 3_000

/** The management API loads this long after the start: it takes 0.2 s, and no call needs it. */
const MANAGEMENT_AFTER_MS = 1_000

export type RunningTollgate = Awaited<ReturnType<typeof startTollgate>>

/** The composition root: configuration → store → services → server. Everything is created here and passed down. */
export async function startTollgate(config: Config, surroundings: Surroundings) {
  const { clock = systemClock } = surroundings
  checkNodeSockets()
  const { own, discount } = await readPricing(config)
  const certificate = config.tls === null ? null : readCertificate(config.tls)
  const installation = await openInstallation(config, { ...surroundings, clock })
  let spool: SettlementSpool | null = null
  try {
    const { log } = surroundings
    spool = await openSpool(config, log)
    const priceSource = await PriceSource.open({ store: installation.store, clock, log }, own)
    return await serve({ config, surroundings, installation, spool, priceSource, discount }, certificate)
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
  const { openSettlementSpool } = await import('../ledger/settlement-spool.ts')
  try {
    return await openSettlementSpool(dir, log)
  } catch (error) {
    throw new InstallationError(`${dir} cannot be opened: ${(error as Error).message}`)
  }
}

async function serve(opened: Opened, certificate: Certificate | null) {
  const { config, surroundings, installation, spool, priceSource } = opened
  const { log } = surroundings
  const { store, clock } = installation
  if (installation.interruptedCalls > 0) {
    log.warn(
      { calls: installation.interruptedCalls },
      'calls that were in flight when the gateway last stopped are closed as interrupted, at no charge',
    )
  }
  const created = await createGateway(opened)
  const { gateway } = created
  const { counts, outbox, deferrals } = gateway
  const signIn = await openSignIn(opened, created)
  priceSource.start((book) => {
    gateway.prices.use(book)
    counts.useBook(book)
  })
  const { management, webhooks } = await createManagement(opened, created, signIn)
  const router = loadLater(() => import('../management/router.ts'), MANAGEMENT_AFTER_MS)
  const dashboardDir = surroundings.dashboardDir ?? DASHBOARD_DIR
  const dashboard = loadLater(() => readDashboard(dashboardDir), MANAGEMENT_AFTER_MS)
  const canWrite = createWriteProbe(() => store.probeWrite(), clock)
  let ready = true
  const isReady = async (): Promise<boolean> =>
    ready &&
    outbox.isDurable &&
    (await canWrite()) &&
    (gateway.isMaintenance || (await created.hasUpstream()))
  if (!gateway.isMaintenance && !(await created.hasUpstream()))
    log.warn(
      { simulator: `off: ${created.reasonNotSimulated()}` },
      'no upstream is configured, so every call gets 503 surface_not_configured and this node is not ready; ' +
        'set ANTHROPIC_API_KEY or OPENAI_API_KEY',
    )

  const listening: Pick<ServerOptions, 'clock' | 'nextUlid' | 'names' | 'shapeBroken'> = {
    clock,
    nextUlid: created.nextUlid,
    names: created.names,
    shapeBroken(refusal, head, requestId) {
      counts.countRefusal(refusal.code)
      return shapeBroken(refusal, head, requestId)
    },
  }
  const server = new HttpServer({
    ...listening,
    onExchange: openFrontDoor(gateway, async (exchange, target, credential) => {
      if (isHealthPath(target)) return await answerHealth(exchange, target, isReady)
      if (isDashboardPath(target)) return await answerDashboard(exchange, target, dashboard.get)
      const signInEndpoint = signIn?.endpoint(target)
      if (signInEndpoint != null) return await signInEndpoint(exchange, credential)
      const { handleOwned } = await router.get()
      await handleOwned(exchange, target, credential, management)
    }),
    trustedProxies: created.trustedProxies,
    connectionsPerAddressMax: config.connectionsPerAddressMax === 0 ? null : config.connectionsPerAddressMax,
    onCrowded: atMostEvery(WARN_INTERVAL_MS, clock, (address: string) => {
      const about = { address, connections: config.connectionsPerAddressMax }
      log.warn(about, 'connections above the limit are closed; for a proxy, set trusted_proxies')
    }),
    certificate: certificate === null ? null : pairOf(certificate),
  })
  const metrics = await openMetricsListener(config, listening, management.scrapeMetrics)
  const address = await server.listen(config.host, config.port, config.reusePort)
  if (!gateway.isMaintenance) {
    void outbox.replay(spool?.pending() ?? [], (closing) => void counts.countReplay(closing, store))
    webhooks.start()
    if (config.deferredPoll) deferrals.start()
    signIn?.start()
  }
  const modelProbe = new ModelProbe({
    store,
    clock,
    log,
    counts,
    priceSource,
    // The simulator lists what it answers, which says nothing about names.
    config: surroundings.simulator === true ? { ...config, messages: null, chat: null } : config,
  })
  if (config.doctorProbe && !gateway.isMaintenance) modelProbe.start()
  const retention = gateway.isMaintenance ? null : startRetention(store, clock, config, log)

  return {
    reloadPrices: (file: string) =>
      reload(file, 'prices', opened, async () => {
        await priceSource.useOverlays(await readOverlayText(readFileSync(file, 'utf8')))
      }),
    reloadCertificate: (file: string) =>
      reload(file, 'certificate', opened, async () => {
        if (config.tls === null) return
        const renewed = readCertificate(config.tls)
        const warning = outOfDate(renewed, clock.nowMs())
        if (warning !== null) log.warn(warning)
        server.useCertificate(pairOf(renewed))
      }),
    certificate,
    get isSimulated() {
      return created.isSimulated()
    },
    get reasonNotSimulated() {
      return created.reasonNotSimulated()
    },
    host: address.address,
    port: address.port,
    metricsPort: metrics?.port ?? null,
    firstAdminKey: installation.firstAdminKey,
    /** Stops in the reverse order of starting: readiness, new connections, running streams, upstream, store. */
    async stop() {
      ready = false
      priceSource.stop()
      retention?.stop()
      await modelProbe.stop()
      await deferrals.stop()
      const checksEnd = signIn?.stop()
      router.cancel()
      dashboard.cancel()
      const cutStreams = await drain(server, created, config.drainMs)
      await checksEnd
      await metrics?.close()
      await close(opened, created, webhooks)
      return { cutStreams }
    },
  }
}

/** Uses the file's new content. If that fails, the former content stays in use: the log and an event say why. */
async function reload(
  file: string,
  what: 'certificate' | 'prices',
  { surroundings: { log }, installation: { store, clock } }: Opened,
  use: () => Promise<void>,
): Promise<void> {
  try {
    await use()
    log.info({ file }, `the new ${what} of the file ${what === 'prices' ? 'are' : 'is'} in use`)
  } catch (error) {
    const reason = error instanceof ConfigError ? error.problems.join('; ') : (error as Error).message
    log.error(
      { file, reason },
      `the file was refused, and the former ${what} ${what === 'prices' ? 'stay' : 'stays'} in use`,
    )
    await store
      .recordOwnEvent('reload.refused', { file, reason }, clock.nowMs())
      .catch((cause: Error) =>
        log.error({ cause: cause.message }, 'the event reload.refused could not be recorded'),
      )
  }
}

function pairOf({ cert, key }: Certificate): CertificatePair {
  return { cert, key: key.reveal() }
}

/** Lets running calls end, cuts those that take longer, and settles them. Returns how many were cut. */
async function drain(
  server: HttpServer,
  { gateway, configured }: CreatedGateway,
  drainMs: number,
): Promise<number> {
  const { inFlight, sockets, queues, ownUpstreams, outbox, background, refusedCalls } = gateway
  queues.close()
  sockets.drain(drainMs)
  const drainedByMs = performance.now() + drainMs
  const cutStreams = await server.drain(drainMs)
  // The gateway may still be reading calls whose clients have left.
  await untilQuiet(() => inFlight.count === 0, drainedByMs - performance.now())
  for (const surface of SURFACE_NAMES) configured[surface]?.pool.destroy()
  ownUpstreams.destroy()
  // Keep the database open: calls that were cut are still being settled.
  await untilQuiet(
    () => inFlight.count === 0 && outbox.waiting === 0 && background.count === 0,
    limits.settleOnStopMs,
  )
  await refusedCalls.written()
  return cutStreams + sockets.turnsCut
}

async function close(
  { installation, spool, surroundings: { log } }: Opened,
  { traces }: CreatedGateway,
  webhooks: WebhookDispatcher,
): Promise<void> {
  await webhooks.stop()
  if (traces !== null) await unlessLate(traces.close(), TRACES_FLUSH_MS)
  // Close the spool before the data directory is unlocked, or another process could read it during a write.
  if (spool !== null) {
    await installation.store.close()
    await spool.close()
    if (spool.waiting > 0) log.warn({ settlements: spool.waiting }, 'settlements wait in the spool')
  }
  await installation.close()
}
