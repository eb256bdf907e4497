import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { FALLBACK_VARIABLES, SETTING_NAMES, SETTINGS, TRACE_VARIABLES, VARIABLES } from './config-schema.ts'
import { ConfigError } from './kernel/errors.ts'
import type { Nanos } from './kernel/money.ts'
import type { Secret } from './kernel/secret.ts'
import { type LogLevel, nearestName } from './kernel/vocabulary.ts'

/**
 * Reads the configuration once, from environment variables (scalars and secrets) and an optional JSON file (the rest);
 * the environment wins. Unknown names are refused in both, because a typo must not weaken a limit. All problems are
 * reported together. Nothing else reads the environment.
 */

/** The providers' own URLs. */
export const PROVIDER_URLS = {
  messages: 'https://api.anthropic.com',
  chat: 'https://api.openai.com/v1',
} as const

export interface UpstreamConfig {
  /** The base URL that the surface's SDK would use. */
  readonly url: URL
  /** The upstream API key. Null for local model servers without keys. */
  readonly key: Secret | null
}

/** Sampling and batching of traces, from OpenTelemetry's variables. */
export interface TraceConfig {
  readonly sampler: z.output<(typeof TRACE_VARIABLES)['OTEL_TRACES_SAMPLER']>
  /** The ratio of the ratio-based samplers. */
  readonly ratio: number
  /** The `OTEL_BSP_…` variables that are set; the SDK has defaults for the others. */
  readonly batches: { readonly [Option in keyof typeof BATCH_VARIABLES]?: number }
}

export interface Config {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** PostgreSQL, shared by any number of nodes; null for SQLite in the data directory. */
  readonly databaseUrl: Secret | null
  readonly adminKey: Secret | null
  readonly pepper: Secret | null
  readonly prefix: string
  readonly logLevel: LogLevel
  /** PEM files, validated by `readCertificate`. Null: plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  /** Both null: the simulator is the upstream. One null: that surface answers 503. */
  readonly messages: UpstreamConfig | null
  readonly chat: UpstreamConfig | null
  readonly stateful: 'pass' | 'refuse'
  /** Whether endpoints that issue upstream credentials are served. */
  readonly minting: 'pass' | 'refuse'
  /** The price overlay file and its text, if any. */
  readonly prices: { readonly file: string; readonly text: string } | null
  /** Discounts as decimal fractions: one for all models, and others by pattern. */
  readonly discount: string
  readonly discounts: Readonly<Record<string, string>>
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  readonly injectUsage: boolean
  /** Whether a call whose client left is cancelled upstream or read to its end. */
  readonly onLeave: 'cancel' | 'finish'
  /** The service tier of the upstream project, for requests that name none. */
  readonly chatDefaultTier: string | null
  readonly budgetMode: 'exact' | 'settled'
  /** How long a call waits for budget or credit. */
  readonly budgetWaitMs: number
  /** How long logged bodies are stored. */
  readonly retentionDays: number
  /** Maximum bytes of all logged bodies together. */
  readonly bodiesBytesMax: number
  readonly drainMs: number
  readonly bodyIdleTimeoutMs: number
  readonly bodyBytesPerSecondMin: number
  readonly callsInFlightPerKeyMax: number
  /** The most that an unbounded call holds of its account. */
  readonly unboundedHoldNanos: Nanos
  /** Whether replies have the balance header. */
  readonly showBalance: boolean
  /** 0: no limit. */
  readonly connectionsPerAddressMax: number
  /** Addresses and CIDR ranges whose `X-Forwarded-For` names the client. */
  readonly trustedProxies: readonly string[]
  /** Whether upstream is polled for the cost of batches and background responses. */
  readonly deferredPoll: boolean
  /** Whether `results_url` of Message batches is rewritten to this gateway. */
  readonly rewriteResultsUrl: boolean
  /** Whether `/metrics` needs no key. */
  readonly metricsPublic: boolean
  /** Null: no traces. */
  readonly traces: TraceConfig | null
  /** Whether webhooks may go to private addresses, and over plain HTTP. */
  readonly webhooksAllowPrivate: boolean
  /** The balance below which `balance.low` is emitted; null: never. */
  readonly balanceLowNanos: Nanos | null
  /** Percentages of a cap at which `key.budget.threshold` is emitted, ascending. */
  readonly budgetThresholdsPercent: readonly number[]
  /** The dashboard's public URL, for links in messages. */
  readonly dashboardUrl: URL | null
}

export { ConfigError }

export type Environment = Readonly<Record<string, string | undefined>>

const BATCH_VARIABLES = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
} as const

export function readConfig(environment: Environment, workingDir = process.cwd()): Config {
  const problems: string[] = []
  const env = readVariables(environment, VARIABLES, problems)
  const fallback = readVariables(environment, FALLBACK_VARIABLES, problems)
  const traces = readTraces(environment, problems)
  refuseUnknownVariables(environment, problems)
  const file = readFile(environment, workingDir, problems)
  const tls = tlsFiles(env?.TOLLGATE_TLS_CERT, env?.TOLLGATE_TLS_KEY, workingDir, problems)
  const prices = readPrices(env?.TOLLGATE_PRICES, workingDir, problems)
  if (problems.length > 0 || env === null || fallback === null || file === null)
    throw new ConfigError(problems)
  return {
    host: env.TOLLGATE_HOST,
    port: env.TOLLGATE_PORT,
    dataDir: resolve(workingDir, env.TOLLGATE_DATA_DIR),
    databaseUrl: env.TOLLGATE_DATABASE_URL ?? null,
    adminKey: env.TOLLGATE_ADMIN_KEY ?? null,
    pepper: env.TOLLGATE_PEPPER ?? null,
    prefix: env.TOLLGATE_PREFIX,
    logLevel: env.TOLLGATE_LOG_LEVEL,
    tls,
    messages: upstream(
      env.TOLLGATE_MESSAGES_URL,
      env.TOLLGATE_MESSAGES_KEY ?? fallback.ANTHROPIC_API_KEY,
      PROVIDER_URLS.messages,
    ),
    chat: upstream(
      env.TOLLGATE_CHAT_URL,
      env.TOLLGATE_CHAT_KEY ?? fallback.OPENAI_API_KEY,
      PROVIDER_URLS.chat,
    ),
    prices,
    discount: env.TOLLGATE_DISCOUNT,
    traces,
    budgetMode: file.budgets.mode,
    budgetWaitMs: file.budgets.wait_seconds,
    unpriced: file.pricing.unpriced,
    discounts: file.pricing.discounts,
    retentionDays: file.requests.retention_days,
    bodiesBytesMax: file.requests.bodies_bytes_max,
    bodyIdleTimeoutMs: file.requests.body_idle_seconds,
    bodyBytesPerSecondMin: file.requests.body_bytes_per_second_min,
    injectUsage: file.chat.inject_usage,
    chatDefaultTier: file.chat.default_tier,
    stateful: file.stateful,
    minting: file.minting,
    onLeave: file.streams.on_leave,
    deferredPoll: file.deferred.poll,
    rewriteResultsUrl: file.deferred.rewrite_results_url,
    showBalance: file.headers.balance,
    callsInFlightPerKeyMax: file.limits.calls_in_flight_per_key,
    connectionsPerAddressMax: file.limits.connections_per_address,
    unboundedHoldNanos: file.limits.unbounded_hold_usd,
    webhooksAllowPrivate: file.webhooks.allow_private,
    balanceLowNanos: file.webhooks.balance_low_usd,
    budgetThresholdsPercent: file.webhooks.thresholds_percent,
    metricsPublic: file.metrics.public,
    dashboardUrl: file.dashboard_url,
    trustedProxies: file.trusted_proxies,
    drainMs: file.shutdown.drain_seconds,
  }
}

/** The variables that are set, parsed. Null after a problem. */
function readVariables<Shape extends Readonly<Record<string, z.ZodType>>>(
  environment: Environment,
  schemas: Shape,
  problems: string[],
): z.output<z.ZodObject<Shape>> | null {
  // An empty variable counts as not set: `NAME= command` and unset secrets in compose files produce one.
  const set = Object.keys(schemas).filter((name) => (environment[name] ?? '') !== '')
  const read = z.object(schemas).safeParse(Object.fromEntries(set.map((name) => [name, environment[name]])))
  if (read.success) return read.data
  // The value is not repeated: it may be a secret.
  problems.push(...read.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`))
  return null
}

/** Without an endpoint, OpenTelemetry's variables are not validated: they may be for other programs. */
function readTraces(environment: Environment, problems: string[]): TraceConfig | null {
  const isSet = (name: string) => (environment[name] ?? '') !== ''
  if (!isSet('OTEL_EXPORTER_OTLP_ENDPOINT') && !isSet('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return null
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return null
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return null
  const otel = readVariables(environment, TRACE_VARIABLES, problems)
  if (otel === null) return null
  return {
    sampler: otel.OTEL_TRACES_SAMPLER,
    ratio: Number(otel.OTEL_TRACES_SAMPLER_ARG),
    batches: Object.fromEntries(
      Object.entries(BATCH_VARIABLES).flatMap(([option, name]) =>
        otel[name] === undefined ? [] : [[option, otel[name]]],
      ),
    ),
  }
}

function upstream(url: URL | undefined, key: Secret | undefined, defaultUrl: string): UpstreamConfig | null {
  if (url === undefined && key === undefined) return null
  return { url: url ?? new URL(defaultUrl), key: key ?? null }
}

function tlsFiles(
  cert: string | undefined,
  key: string | undefined,
  workingDir: string,
  problems: string[],
): Config['tls'] {
  if (cert !== undefined && key !== undefined)
    return { certFile: resolve(workingDir, cert), keyFile: resolve(workingDir, key) }
  if (cert !== undefined)
    problems.push(
      'TOLLGATE_TLS_KEY is missing: name the file with the key of TOLLGATE_TLS_CERT, or unset both',
    )
  if (key !== undefined)
    problems.push(
      'TOLLGATE_TLS_CERT is missing: name the file with the certificate of TOLLGATE_TLS_KEY, or unset both',
    )
  return null
}

function readPrices(path: string | undefined, workingDir: string, problems: string[]): Config['prices'] {
  if (path === undefined) return null
  const file = resolve(workingDir, path)
  try {
    return { file, text: readFileSync(file, 'utf8') }
  } catch (error) {
    problems.push(`TOLLGATE_PRICES: ${file} cannot be read: ${(error as Error).message}`)
    return null
  }
}

/** Client variables, which the gateway ignores, since it may be started from the same shell. */
export const CLIENT_VARIABLES: readonly string[] = ['TOLLGATE_URL', 'TOLLGATE_KEY']

function refuseUnknownVariables(environment: Environment, problems: string[]): void {
  const known = Object.keys(VARIABLES)
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('TOLLGATE_') || known.includes(name) || CLIENT_VARIABLES.includes(name)) continue
    const close = nearestName(name, known, 3)
    const hint = close === null ? '' : ` (did you mean ${close}?)`
    problems.push(`${name} is not a variable of Tollgate${hint}; docs/CONFIGURATION.md lists the names`)
  }
}

/** The path of the configuration file, which need not exist. */
export function configFile(environment: Environment, workingDir = process.cwd()): string {
  return resolve(workingDir, environment['TOLLGATE_CONFIG'] || 'tollgate.json')
}

function readFile(
  environment: Environment,
  workingDir: string,
  problems: string[],
): z.output<typeof SETTINGS> | null {
  const file = configFile(environment, workingDir)
  let json: unknown = {}
  try {
    json = JSON.parse(readFileSync(file, 'utf8'), withoutComments)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (error instanceof SyntaxError) problems.push(`${file} is not JSON: ${error.message}`)
    else if (!isMissing || environment['TOLLGATE_CONFIG'])
      problems.push(`${file} cannot be read: ${(error as Error).message}`)
  }
  const read = SETTINGS.safeParse(json)
  if (read.success) return read.data
  for (const issue of read.error.issues)
    problems.push(...describeIssue(issue, json).map((text) => `${file}: ${text}`))
  return null
}

/** A JSON reviver that drops comments (`"// …"`) and `$schema`. */
function withoutComments(name: string, value: unknown): unknown {
  return name.startsWith('//') || name === '$schema' ? undefined : value
}

function describeIssue(issue: z.core.$ZodIssue, json: unknown): string[] {
  const name = issue.path.reduce<string>(
    (path, part) =>
      typeof part === 'number' ? `${path}[${part}]` : path === '' ? String(part) : `${path}.${String(part)}`,
    '',
  )
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const full = name === '' ? key : `${name}.${key}`
      // Short names are close to almost any other name.
      const near = nearestName(full, SETTING_NAMES, Math.min(3, Math.floor(key.length / 3)))
      return `"${full}" is not a setting${near === null ? '' : ` (did you mean "${near}"?)`}`
    })
  const given = issue.path.reduce<unknown>(
    (value, part) => (value as Record<PropertyKey, unknown>)?.[part],
    json,
  )
  return [`"${name}" ${issue.message}${given === undefined ? '' : `, not ${kindOf(given)}`}`]
}

/** Shows numbers; anything else only by its kind, because it may be long or a misplaced secret. */
function kindOf(given: unknown): string {
  if (given === null || typeof given === 'number') return String(given)
  if (Array.isArray(given)) return 'this list'
  if (typeof given === 'string') return 'this text'
  return typeof given === 'boolean' ? 'true or false' : 'an object'
}
