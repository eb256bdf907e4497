import type { Config, UpstreamConfig } from './config.ts'
import { formatUsd } from './kernel/money.ts'
import { type Secret, shownDatabase } from './kernel/secret.ts'

export interface ShownSetting {
  readonly name: string
  readonly value: string | number | boolean | null | readonly string[]
}

type Value = ShownSetting['value']
type Shown<T> = (value: T) => Readonly<Record<string, Value>>

/** A setting under the name of its variable, or of its place in the configuration file. The value is shown as it is. */
const plain =
  (name: string): Shown<Value> =>
  (value) => ({ [name]: value })

const seconds =
  (name: string): Shown<number> =>
  (ms) => ({ [name]: ms / 1_000 })

/** A secret is shown only as set or not. */
const secret =
  (name: string): Shown<Secret | null> =>
  (value) => ({ [name]: value === null ? null : 'set' })

const upstream =
  (surface: string): Shown<UpstreamConfig | null> =>
  (value) => ({
    [`TOLLGATE_${surface}_URL`]: value?.url.href ?? null,
    [`TOLLGATE_${surface}_KEY`]: value?.key == null ? null : 'set',
  })

/** All of the configuration: a setting that is not shown does not compile. */
const SHOWN: { readonly [Name in keyof Config]: Shown<Config[Name]> } = {
  host: plain('TOLLGATE_HOST'),
  port: plain('TOLLGATE_PORT'),
  tls: (tls) => ({ TOLLGATE_TLS_CERT: tls?.certFile ?? null, TOLLGATE_TLS_KEY: tls?.keyFile ?? null }),
  dataDir: plain('TOLLGATE_DATA_DIR'),
  databaseUrl: (url) => ({ TOLLGATE_DATABASE_URL: url === null ? null : shownDatabase(url) }),
  adminKey: secret('TOLLGATE_ADMIN_KEY'),
  pepper: secret('TOLLGATE_PEPPER'),
  prefix: plain('TOLLGATE_PREFIX'),
  logLevel: plain('TOLLGATE_LOG_LEVEL'),
  messages: upstream('MESSAGES'),
  chat: upstream('CHAT'),
  prices: (prices) => ({ TOLLGATE_PRICES: prices?.file ?? null }),
  discount: plain('TOLLGATE_DISCOUNT'),
  discounts: (all) => ({
    'pricing.discounts': Object.entries(all).map(([pattern, part]) => `${pattern}: ${part}`),
  }),
  unpriced: plain('pricing.unpriced'),
  injectUsage: plain('chat.inject_usage'),
  chatDefaultTier: plain('chat.default_tier'),
  budgetMode: plain('budgets.mode'),
  budgetWaitMs: seconds('budgets.wait_seconds'),
  onLeave: plain('streams.on_leave'),
  stateful: plain('stateful'),
  minting: plain('minting'),
  drainMs: seconds('shutdown.drain_seconds'),
  bodyIdleTimeoutMs: seconds('requests.body_idle_seconds'),
  bodyBytesPerSecondMin: plain('requests.body_bytes_per_second_min'),
  retentionDays: plain('requests.retention_days'),
  bodiesBytesMax: plain('requests.bodies_bytes_max'),
  callsInFlightPerKeyMax: plain('limits.calls_in_flight_per_key'),
  connectionsPerAddressMax: plain('limits.connections_per_address'),
  spilledBytesMax: plain('limits.spilled_bytes'),
  trustedProxies: plain('trusted_proxies'),
  webhooksAllowPrivate: plain('webhooks.allow_private'),
  balanceLowNanos: (nanos) => ({ 'webhooks.balance_low_usd': nanos === null ? null : formatUsd(nanos) }),
  budgetThresholdsPercent: (all) => ({ 'webhooks.thresholds_percent': all.map(String) }),
  dashboardUrl: (url) => ({ dashboard_url: url?.href ?? null }),
  metricsPublic: plain('metrics.public'),
  deferredPoll: plain('deferred.poll'),
  rewriteResultsUrl: plain('deferred.rewrite_results_url'),
  traces: (traces) => ({ OTEL_TRACES_SAMPLER: traces === null ? null : `${traces.sampler} ${traces.ratio}` }),
}

/** The configuration without secrets. */
export function shownConfiguration(config: Config): readonly ShownSetting[] {
  return Object.entries(SHOWN).flatMap(([name, show]) => {
    const shown = (show as Shown<unknown>)(config[name as keyof Config])
    return Object.entries(shown).map(([setting, value]) => ({ name: setting, value }))
  })
}
