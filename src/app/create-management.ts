import { basename } from 'node:path'
import { SIGN_IN_PATH } from '../http/validate-head.ts'
import { upstreamKeys } from '../http-calls/own-upstreams.ts'
import { loadLater } from '../kernel/shared-work.ts'
import type { Management, ServingNode, UpstreamKeys } from '../management/route.ts'
import type { MetricSources } from '../telemetry/metric-table.ts'
import { WebhookDispatcher } from '../webhooks/dispatcher.ts'
import { createResolveHost, type EndpointRules } from '../webhooks/endpoint-address.ts'
import type { CreatedGateway, Opened } from './create-gateway.ts'
import type { OpenedSignIn } from './open-sign-in.ts'

export async function createManagement(opened: Opened, created: CreatedGateway, signIn: OpenedSignIn | null) {
  const { config, surroundings, installation } = opened
  const { gateway, nextUlid, settlements, isSecure } = created
  const { store, clock, digestKey, webhookSealer } = installation
  const { waitingCalls, refusedCalls, queues } = gateway
  const rules: EndpointRules = {
    allowPrivate: config.webhooksAllowPrivate,
    proxied: config.webhooksProxy ? config.egress : null,
    resolveHost: surroundings.resolveHost ?? createResolveHost(config.webhooksAllowPrivate),
  }
  await store.setBudgetThresholds(config.budgetThresholdsPercent)
  await store.setBalanceLow(config.balanceLowNanos)
  const webhooks = new WebhookDispatcher({
    store,
    clock,
    rules,
    log: surroundings.log,
    sealer: webhookSealer,
    dashboardUrl: config.dashboardUrl,
  })
  // Loaded with the first scrape, because prom-client is slow to load.
  const scraper = loadLater(
    async () => (await import('../telemetry/scrape.ts')).createScraper(metricSources(created, webhooks)),
    null,
  )
  const management: Management = {
    clock,
    nextUlid,
    digestKey,
    servicePrefix: config.prefix,
    store,
    bodyTimes: gateway.reading.times,
    isSecure,
    metricsPublic: config.metricsPublic,
    settlements,
    upstreamKeys: upstreamKeysOf(opened, created),
    waitingCalls,
    refusedCalls,
    node: nodeOf(opened, created),
    signInPath: signIn === null ? null : SIGN_IN_PATH,
    endSessionUrl: async () => (await signIn?.endSessionUrl()) ?? null,
    scrapeMetrics: async () => await (await scraper.get())(),
    recheckWaitingCalls: () => queues.signalAll(),
    webhooks: { sealer: webhookSealer, rules, wake: () => webhooks.wake() },
  }
  return { management, webhooks }
}

function metricSources(
  { gateway, configured }: CreatedGateway,
  webhooks: WebhookDispatcher,
): Omit<MetricSources, 'eventLoopDelay'> {
  const { store, clock, counts, inFlight, waitingCalls } = gateway
  return {
    counts,
    store,
    load: store.load,
    inFlight,
    waitingCalls,
    webhookFailures: () => webhooks.failures,
    connections: (surface) => configured[surface]?.pool.connections ?? null,
    nowMs: () => clock.nowMs(),
  }
}

function nodeOf({ config, priceSource }: Opened, { gateway, isSimulated }: CreatedGateway): ServingNode {
  return {
    storeKind: config.databaseUrl === null ? 'sqlite' : 'postgres',
    get simulator() {
      return isSimulated()
    },
    alertThresholds: config.budgetThresholdsPercent,
    callsInFlight: () => gateway.inFlight.count,
    prices: priceSource,
    // An account's own upstream may offer others.
    offered: (surface) => (gateway.ownUpstreams.isUsed ? null : gateway.counts.surfaces[surface].offered),
    overlayFile: config.prices === null ? null : basename(config.prices.file),
  }
}

function upstreamKeysOf(
  { config, surroundings, installation }: Opened,
  created: CreatedGateway,
): UpstreamKeys {
  const { gateway, isSimulated, reasonNotSimulated } = created
  // The URL of the simulator changes with every start, and an account's key must not be sent there.
  const installed = surroundings.simulator === true ? { messages: null, chat: null } : config
  const keys = upstreamKeys(installed, installation.upstreamSealer, gateway.ownUpstreams, gateway.store)
  return {
    ...keys,
    async changed() {
      const wasSimulated = isSimulated()
      await keys.changed()
      if (wasSimulated === isSimulated()) return
      gateway.log.warn(
        wasSimulated
          ? `the built-in simulator is off now: ${reasonNotSimulated()}`
          : 'no account has its own upstream any more, so the built-in simulator serves again',
      )
    },
  }
}
